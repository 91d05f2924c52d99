// DynamicQuantize: the scale and the zero point of a block from its range.
//
//   ScaleMaker maker(plan);
//   if (plan.has_tensor_scale) fault = maker.SetTensorScale(whole_tensor);
//   BlockScale scale = maker.Make(Range{minimum, maximum});
//   if (scale.fault != ScaleFault::kNone) return maker.Error(index, range, scale.fault);
//
// Everything in FLOAT and in the order that the rules give: each line is one rounding.
#ifndef QUANTD_REFERENCE_SCALE_RULES_H_
#define QUANTD_REFERENCE_SCALE_RULES_H_

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "quantd/plan.h"

namespace quantd::reference {

// min(0, min x) and max(0, max x) over the finite elements of a block, in FLOAT.
struct Range {
  float minimum = 0;
  float maximum = 0;

  float largest_magnitude() const { return std::max(-minimum, maximum); }
  void Include(float x) {
    minimum = std::min(minimum, x);
    maximum = std::max(maximum, x);
  }
};

enum class ScaleFault : uint8_t { kNone, kUnderflow, kOverflow };

struct BlockScale {
  float scale = 1;         // what x is divided by; NVFP4: float(y_scale) * tensor scale
  uint32_t code = 0;       // y_scale's element, in the plan's scale_type
  int32_t zero_point = 0;  // y_zero_point's element, a value of the output type
  ScaleFault fault = ScaleFault::kNone;
};

class ScaleMaker {
 public:
  explicit ScaleMaker(const DynamicQuantizePlan& plan);

  // kTwoLevel only, before Make: the second scale from the range of the whole tensor.
  ScaleFault SetTensorScale(const Range& tensor);
  float tensor_scale() const { return tensor_scale_; }

  // A block of nothing but zeros (or of nothing finite) has scale 1 and zero point 0.
  BlockScale Make(const Range& block) const;

  // The error of a fault in scale `index`, or in the tensor scale (index -1).
  absl::Status Error(int64_t index, const Range& range, ScaleFault fault) const;

 private:
  // Rounds to the scale type; sets scale, code and fault.
  BlockScale Rounded(float scale) const;
  BlockScale PowerOfTwo(float largest) const;
  BlockScale TwoLevel(float largest) const;

  ScaleRule rule_;
  DataType scale_type_;
  float largest_;     // of the output type
  int max_exponent_;  // kPowerOfTwo: OCP MX's emax
  float minimum_;     // kRange: qmin, qmax
  float maximum_;
  float steps_;  // kRange: qmax - qmin
  float tensor_scale_ = 1;
};

// The error of an element that is NaN or infinite, by its index in the flattened x.
absl::Status NonFiniteError(int64_t index, float value);

}  // namespace quantd::reference

#endif  // QUANTD_REFERENCE_SCALE_RULES_H_
