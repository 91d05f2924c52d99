// Calibrate from C++: many tensors or chunks of one quantity in, its scale, zero point and range
// out. C++17.
//
//   CalibrationOptions options;
//   options.method = v1::CALIBRATION_METHOD_PERCENTILE;
//   Calibration calibration = client.Calibrate(options);
//   for (const Tensor& batch : batches) {
//     if (absl::Status status = calibration.Add(batch); !status.ok()) return status;
//   }
//   absl::StatusOr<Calibrated> result = calibration.Finish();
//
// The response is a function of the values alone: neither their order nor how they were cut into
// tensors changes a bit. Values that several programs have seen are put together by their states.
#ifndef QUANTD_CLIENT_CALIBRATION_H_
#define QUANTD_CLIENT_CALIBRATION_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "quantd/client/tensor.h"
#include "quantd/v1/quantization.pb.h"

namespace quantd::client {

class Connection;

// What a calibration is for; proto/quantd/v1 says what the fields mean.
struct CalibrationOptions {
  v1::CalibrationMethod method = v1::CALIBRATION_METHOD_UNSPECIFIED;  // unset: MIN_MAX
  v1::DataType output_type = v1::DATA_TYPE_UNSPECIFIED;               // unset: UINT8
  v1::Symmetry symmetry = v1::SYMMETRY_UNSPECIFIED;
  std::optional<int64_t> axis = {};  // one scale an index along it; unset: one for all
  double percentile = 0;             // PERCENTILE only, in (50, 100]; 0: 99.99
  v1::NonFinite non_finite = v1::NON_FINITE_UNSPECIFIED;
  bool return_state = false;
  // Of the whole call, from its first message to its response; 0: ClientOptions::timeout.
  absl::Duration timeout = absl::ZeroDuration();
};

struct Calibrated {
  Tensor scale;                      // FLOAT, [] or [channels]
  std::optional<Tensor> zero_point;  // of scale's shape and the output's type; integers only
  Tensor range;           // FLOAT, [2] or [2, channels]: EmbeddingOptions::ranges takes it
  uint64_t elements = 0;  // finite values that were seen
  uint64_t non_finite_elements = 0;  // that were left out
  std::string state;                 // with return_state: what Calibration::AddState takes
};

// A call under way. Movable; not for two threads at a time, but for Cancel. Never retried
// automatically, as other calls are: what was sent is gone. Ends, cancelled, when it is dropped.
// REQUIRES: the client outlives it.
class Calibration {
 public:
  Calibration(Calibration&&) noexcept;
  Calibration& operator=(Calibration&&) noexcept;
  ~Calibration();

  // Sends the values of x: FLOAT, FLOAT16, BFLOAT16 or INT32, of any shape that has the axis. A
  // large tensor goes in several messages, unless it lies in shared memory. Waits while the server
  // has no room for more. Once this fails, everything after it fails, too, with the same status:
  // the error may be about an earlier tensor.
  absl::Status Add(const Tensor& x);
  // The same of bytes where they lie, as Tensor::data would hold them: a large tensor is copied
  // message by message.
  absl::Status Add(v1::DataType type, absl::Span<const int64_t> shape, absl::string_view data);
  // Adds what another calibration has seen.
  absl::Status AddState(absl::string_view state);

  // The result. REQUIRES: called once, last.
  absl::StatusOr<Calibrated> Finish();

  // Ends the call soon, with CANCELLED. Safe from any thread.
  void Cancel();

 private:
  friend class Client;
  struct Call;
  Calibration(Connection& connection, const CalibrationOptions& options);
  absl::Status Send(v1::CalibrateRequest& message);

  std::unique_ptr<Call> call_;
};

}  // namespace quantd::client

#endif  // QUANTD_CLIENT_CALIBRATION_H_
