// Calibrate: many tensors or chunks of one quantity in; its scale, zero point and range out.
//
//   auto calibrator = Calibrator::Create({.method = CalibrationMethod::kMse});
//   for (...) status = calibrator->Add(x, executor, interrupted);
//   absl::StatusOr<Calibration> calibration = calibrator->Result(executor, interrupted);
//
// The result is a function of the multiset of values alone: neither their order, nor how they were
// cut into tensors, nor the number of threads changes a bit, and states of several workers merge to
// the state that one worker would have. core/CALIBRATION.md has the rules.
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
  kPercentile,  // all but the outermost, (100 - percentile) %
  kEntropy,     // what loses the least information (Kullback-Leibler); integers only
  kMse,         // what gives the smallest mean squared error; integers only
};

// One quantity's. Anything else is an INVALID_ARGUMENT of Create that names the field.
struct CalibrationOptions {
  CalibrationMethod method = CalibrationMethod::kMinMax;
  // An output type of Quantize; unset: UINT8.
  DataType output_type = DataType::kUnspecified;
  // Default: asymmetric for integers, symmetric for FLOAT8, FLOAT6 and FLOAT4, which have nothing
  // else.
  Symmetry symmetry = Symmetry::kDefault;
  // A scale for each index along it, in [-rank, rank - 1] of every x; none: one for all.
  std::optional<int64_t> axis = std::nullopt;
  // In (50, 100]; 0: 99.99. kPercentile only.
  double percentile = 0;
  NonFinite non_finite = NonFinite::kReject;
};

// One entry a channel: the tensor, or an index along the axis.
struct Calibration {
  Shape shape;                      // of scale and zero_point: [] or [channels]
  std::vector<float> scale;         // > 0; 1 for a channel of nothing but zeros, or without values
  bool has_zero_point = false;      // integers
  std::vector<int32_t> zero_point;  // values of the output type
  Shape range_shape;                // [2] or [2, channels]
  std::vector<float> range;         // the lowest of each channel, then the highest
  uint64_t elements = 0;            // finite values that were seen; 2^64 - 1: so many or more
  uint64_t non_finite_elements = 0;
};

// What was seen so far. Moves; not to be used by two threads at a time.
class Calibrator {
 public:
  static absl::StatusOr<Calibrator> Create(const CalibrationOptions& options);
  Calibrator(Calibrator&&) noexcept;
  Calibrator& operator=(Calibrator&&) noexcept;
  ~Calibrator();

  // Most bytes that it will hold after Add(x) or Merge(state), all channels of today among them; so
  // that they can be set aside before. Half of BytesWithState is given back by Merge.
  // INVALID_ARGUMENT as of Add and Merge, as far as shapes and numbers of channels say.
  absl::StatusOr<uint64_t> BytesWith(const TensorView& x) const;
  absl::StatusOr<uint64_t> BytesWithState(absl::Span<const uint8_t> state) const;
  // Most bytes that Add takes besides while it runs, for an x of so many elements on so many
  // threads.
  static uint64_t AddScratchBytes(uint64_t elements, int threads);

  // Adds the values of x: FLOAT, FLOAT16, BFLOAT16 or INT32 (rounded to FLOAT). INVALID_ARGUMENT
  // ("x", "axis") for another type, bytes that do not match type and shape, an axis that x does not
  // have, another length along it than before, a NaN or an infinity (with its index) when they are
  // rejected; then nothing has changed. CANCELLED when interrupted; then the calibrator must not be
  // used any more.
  absl::Status Add(const TensorView& x, const Executor& executor, Interrupted interrupted);

  // Adds what another calibrator has seen. INVALID_ARGUMENT ("state") for bytes that State() does
  // not make, other channels, or no bins where the method needs them; then nothing has changed.
  absl::Status Merge(absl::Span<const uint8_t> state);

  // INVALID_ARGUMENT ("x") before anything was added; CANCELLED when interrupted.
  absl::StatusOr<Calibration> Result(const Executor& executor, Interrupted interrupted) const;

  // What was seen, for Merge: equal bytes for equal multisets of values. REQUIRES: something was
  // added.
  std::string State() const;
  // The bytes of that.
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
