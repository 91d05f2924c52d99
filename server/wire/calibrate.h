// The messages of a calibration: bytes in -> what they add, and its outcome -> bytes out. As
// decode.h and encode.h have it for the calls with one request; x and state are never copied.
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
  std::optional<TensorView> x;  // views the message, `packed`, or (without bytes yet) `shared`
  std::vector<std::vector<uint8_t>> packed;
  std::optional<SharedTensor> shared;
  BytesView state;  // empty: none
};

// INVALID_ARGUMENT as DecodeRequest; what depends on more than one field, or on messages before, is
// left to the calibrator. The result views `message`.
absl::StatusOr<CalibrateMessage> DecodeCalibrate(BytesView message);

// Most bytes that the response takes on the wire, and that computing and encoding it take, of so
// many channels and bytes of state.
uint64_t MaxCalibrationBytes(uint64_t channels, uint64_t state_bytes);
uint64_t CalibrationMemoryBytes(uint64_t channels, uint64_t state_bytes);

// The message CalibrateResponse; an empty piece when the system had no memory.
memory::Piece EncodeCalibration(const Calibration& calibration, DataType output_type,
                                std::string state, memory::Pool& pool);

}  // namespace quantd::wire

#endif  // QUANTD_SERVER_WIRE_CALIBRATE_H_
