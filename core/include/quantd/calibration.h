// Calibrate: computes the scale, zero point and range of a quantity from many tensors or chunks.
//
//   auto calibrator = Calibrator::Create({.method = CalibrationMethod::kMse});
//   for (...) status = calibrator->Add(x, executor, interrupted);
//   absl::StatusOr<Calibration> calibration = calibrator->Result(executor, interrupted);
//
// The result depends only on the multiset of values: neither their order, nor how they were cut
// into tensors, nor the number of threads changes a bit, and states of several workers merge to the
// state that one worker would have. core/CALIBRATION.md has the rules.
#ifndef QUANTD_CALIBRATION_H_
#define QUANTD_CALIBRATION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "quantd/arithmetic.h"
#include "quantd/data_type.h"
#include "quantd/executor.h"
#include "quantd/parameters.h"
#include "quantd/shape.h"

namespace quantd {

// Which part of the values the range covers.
enum class CalibrationMethod : uint8_t {
  kMinMax,      // all
  kPercentile,  // all but the outermost (100 - percentile) %
  kEntropy,     // the part that loses the least information (Kullback-Leibler); integers only
  kMse,         // the part with the smallest mean squared error; integers only
};

// The options for one quantity. Create returns INVALID_ARGUMENT, with the field, for invalid ones.
struct CalibrationOptions {
  CalibrationMethod method = CalibrationMethod::kMinMax;
  // An output type of Quantize; unset: UINT8.
  DataType output_type = DataType::kUnspecified;
  // Default: asymmetric for integers, symmetric for FLOAT8, FLOAT6 and FLOAT4, which support
  // nothing else.
  Symmetry symmetry = Symmetry::kDefault;
  // One scale per index along this axis, which is in [-rank, rank - 1] of every x; nullopt: one
  // scale.
  std::optional<int64_t> axis = std::nullopt;
  // In (50, 100]; 0: 99.99. kPercentile only.
  double percentile = 0;
  NonFinite non_finite = NonFinite::kReject;
};

// One entry per channel: the tensor, or an index along the axis.
struct Calibration {
  Shape shape;                      // of scale and zero_point: [] or [channels]
  std::vector<float> scale;         // > 0; 1 for a channel without values, or with only zeros
  bool has_zero_point = false;      // for integers
  std::vector<int32_t> zero_point;  // values of the output type
  Shape range_shape;                // [2] or [2, channels]
  std::vector<float> range;         // the lowest value of each channel, then the highest
  uint64_t elements = 0;            // finite values seen; 2^64 - 1: that many or more
  uint64_t non_finite_elements = 0;
};

// The values seen so far, in summary. Movable; for one thread at a time.
class Calibrator {
 public:
  static absl::StatusOr<Calibrator> Create(const CalibrationOptions& options);
  Calibrator(Calibrator&&) noexcept;
  Calibrator& operator=(Calibrator&&) noexcept;
  ~Calibrator();

  // The most bytes that the calibrator will hold after Add(x) or Merge(state), its present channels
  // included, so that the caller can reserve them. Merge frees half of BytesWithState at its end.
  // Returns the INVALID_ARGUMENT of Add and Merge, as far as it follows from shapes and numbers of
  // channels.
  absl::StatusOr<uint64_t> BytesWith(const TensorView& x) const;
  absl::StatusOr<uint64_t> BytesWithState(absl::Span<const uint8_t> state) const;

  // Adds the values of x: FLOAT, FLOAT16, BFLOAT16 or INT32 (rounded to FLOAT). INVALID_ARGUMENT
  // ("x", "axis"): another type, bytes that do not match type and shape, an axis that x does not
  // have, another length along it than before, or a NaN or an infinity (with its index) if they are
  // rejected; nothing has changed then. CANCELLED: interrupted; the calibrator must not be used any
  // more.
  absl::Status Add(const TensorView& x, const Executor& executor, Interrupted interrupted);

  // Adds what another calibrator has seen. INVALID_ARGUMENT ("state"): bytes that State() does not
  // make, other channels, or no bins although the method needs them; nothing has changed then.
  absl::Status Merge(absl::Span<const uint8_t> state);

  // INVALID_ARGUMENT ("x"): nothing was added yet. CANCELLED: interrupted.
  absl::StatusOr<Calibration> Result(const Executor& executor, Interrupted interrupted) const;

  // The input of Merge: equal bytes for equal multisets of values. REQUIRES: something was
  // added.
  std::string State() const;
  // The size of State().
  uint64_t StateBytes() const;

  // 0 before anything was added.
  size_t channels() const;

 private:
  struct Seen;
  explicit Calibrator(std::unique_ptr<Seen> seen);

  std::unique_ptr<Seen> seen_;
};

}  // namespace quantd

#endif  // QUANTD_CALIBRATION_H_
