// The messages of a calibration: decodes what they add, and encodes the result. Like decode.h and
// encode.h for calls with one request. x and state are never copied.
#ifndef QUANTD_SERVER_WIRE_CALIBRATE_H_
#define QUANTD_SERVER_WIRE_CALIBRATE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "quantd/calibration.h"
#include "server/memory/buffer.h"
#include "server/wire/request.h"
#include "server/wire/scan.h"

namespace quantd::wire {

struct CalibrateMessage {
  bool has_options = false;
  CalibrationOptions options;
  bool return_state = false;
  std::optional<TensorView> x;  // views the message, `packed`, or (still without bytes) `shared`
  std::vector<std::vector<uint8_t>> packed;
  std::optional<SharedTensor> shared;
  BytesView state;  // empty if there is none
};

// Returns INVALID_ARGUMENT like DecodeRequest. What depends on several fields, or on earlier
// messages, is checked by the calibrator. The result views `message`.
absl::StatusOr<CalibrateMessage> DecodeCalibrate(BytesView message);

// The most bytes of the response on the wire, and of computing and encoding it, for this number of
// channels and bytes of state.
uint64_t MaxCalibrationBytes(uint64_t channels, uint64_t state_bytes);
uint64_t CalibrationMemoryBytes(uint64_t channels, uint64_t state_bytes);

// The message CalibrateResponse; an empty piece if the system was out of memory.
memory::Piece EncodeCalibration(const Calibration& calibration, DataType output_type,
                                std::string state, memory::Pool& pool);

}  // namespace quantd::wire

#endif  // QUANTD_SERVER_WIRE_CALIBRATE_H_
