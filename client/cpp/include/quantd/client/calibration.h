// Calibrate from C++: computes the scale, zero point and range of a quantity from many tensors or
// chunks. C++17.
//
//   CalibrationOptions options;
//   options.method = v1::CALIBRATION_METHOD_PERCENTILE;
//   Calibration calibration = client.Calibrate(options);
//   for (const Tensor& batch : batches) {
//     if (absl::Status status = calibration.Add(batch); !status.ok()) return status;
//   }
//   absl::StatusOr<Calibrated> result = calibration.Finish();
//
// The result depends only on the values: neither their order nor how they were cut into tensors
// changes a bit. States combine values that several programs have seen.
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

// The options of a calibration; proto/quantd/v1 defines the fields.
struct CalibrationOptions {
  v1::CalibrationMethod method = v1::CALIBRATION_METHOD_UNSPECIFIED;  // unset: MIN_MAX
  v1::DataType output_type = v1::DATA_TYPE_UNSPECIFIED;               // unset: UINT8
  v1::Symmetry symmetry = v1::SYMMETRY_UNSPECIFIED;
  std::optional<int64_t> axis = {};  // one scale per index along it; unset: one scale
  double percentile = 0;             // PERCENTILE only, in (50, 100]; 0: 99.99
  v1::NonFinite non_finite = v1::NON_FINITE_UNSPECIFIED;
  bool return_state = false;
  // Of the whole call, from its first message to its response; 0: ClientOptions::timeout.
  absl::Duration timeout = absl::ZeroDuration();
};

struct Calibrated {
  Tensor scale;                      // FLOAT, [] or [channels]
  std::optional<Tensor> zero_point;  // of scale's shape and the output's type; only for integers
  Tensor range;           // FLOAT, [2] or [2, channels]; input of EmbeddingOptions::ranges
  uint64_t elements = 0;  // finite values that were seen
  uint64_t non_finite_elements = 0;  // values that were left out
  std::string state;                 // with return_state: the input of Calibration::AddState
};

// A call in progress. Movable; for one thread at a time, except for Cancel. Unlike other calls, it
// is never retried automatically, because sent values are gone. Cancelled when it is destroyed.
// REQUIRES: the client outlives it.
class Calibration {
 public:
  Calibration(Calibration&&) noexcept;
  Calibration& operator=(Calibration&&) noexcept;
  ~Calibration();

  // Sends the values of x: FLOAT, FLOAT16, BFLOAT16 or INT32, of any shape that has the axis. A
  // large tensor is sent in several messages, unless it is in shared memory. Waits while the server
  // has no room for more. Once this fails, all later calls fail with the same status; the error may
  // be about an earlier tensor.
  absl::Status Add(const Tensor& x);
  // Sends bytes in place, in the format of Tensor::data; a large tensor is copied message by
  // message.
  absl::Status Add(v1::DataType type, absl::Span<const int64_t> shape, absl::string_view data);
  // Adds the values that another calibration has seen.
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
