// DynamicQuantize: computes the scale and the zero point of a block from its range.
//
//   ScaleMaker maker({.scale_rule = ScaleRule::kRange, .output_type = DataType::kInt8, ...});
//   BlockScale scale = maker.Make(Range{minimum, maximum});
//   if (scale.fault != ScaleFault::kNone) return maker.Error(index, range, scale.fault);
//
// Everything is in FLOAT and in the order of the rules: each line rounds once.
#ifndef QUANTD_SRC_RULES_SCALE_RULES_H_
#define QUANTD_SRC_RULES_SCALE_RULES_H_

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "quantd/arithmetic.h"
#include "quantd/data_type.h"

namespace quantd::rules {

// The same for all blocks of one DynamicQuantize.
struct BlockRule {
  ScaleRule scale_rule = ScaleRule::kRange;
  DataType scale_type = DataType::kFloat;
  DataType output_type = DataType::kUint8;
  int32_t minimum = 0;  // integers
  int32_t maximum = 255;
};

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
  float scale = 1;         // the divisor of x; NVFP4: float(y_scale) * tensor scale
  uint32_t code = 0;       // the element of y_scale, in the scale_type
  int32_t zero_point = 0;  // the element of y_zero_point, a value of the output type
  ScaleFault fault = ScaleFault::kNone;
};

class ScaleMaker {
 public:
  explicit ScaleMaker(const BlockRule& rule);

  // kTwoLevel only, before Make: sets the second scale from the range of the whole tensor.
  ScaleFault SetTensorScale(const Range& tensor);
  float tensor_scale() const { return tensor_scale_; }

  // A block with only zeros (or non-finite elements) has scale 1 and zero point 0.
  BlockScale Make(const Range& block) const;

  // The steps of Make, for loops over many blocks. The scale before rounding to the scale type; not
  // for kPowerOfTwo. REQUIRES: kRule is the block rule's.
  template <ScaleRule kRule>
  float Unrounded(const Range& block) const {
    static_assert(kRule != ScaleRule::kPowerOfTwo);
    if constexpr (kRule == ScaleRule::kRange) return (block.maximum - block.minimum) / steps_;
    const float largest = block.largest_magnitude();
    if constexpr (kRule == ScaleRule::kSymmetric) return largest / largest_;
    return std::max(largest / kFloat4Largest / tensor_scale_, kE4M3Smallest);
  }
  // kPowerOfTwo: the code of the scale, from an exponent such as std::ilogb returns.
  int PowerOfTwoCode(int exponent) const { return std::max(exponent - max_exponent_, -127) + 127; }
  // kRange: the zero point before it is rounded to an integer, half to even.
  float UnroundedZeroPoint(const Range& block, float scale) const {
    return std::clamp(minimum_ - block.minimum / scale, minimum_, maximum_);
  }

  // The error of a fault in scale `index`, or in the tensor scale (index -1).
  absl::Status Error(int64_t index, const Range& range, ScaleFault fault) const;

 private:
  static constexpr float kFloat4Largest = 6;
  static constexpr float kE4M3Largest = 448;
  static constexpr float kE4M3Smallest = 0x1p-9f;

  // Rounds to the scale type; sets scale, code and fault.
  BlockScale Rounded(float scale) const;
  BlockScale PowerOfTwo(float largest) const;
  BlockScale TwoLevel(float wanted) const;

  ScaleRule rule_;
  DataType scale_type_;
  float largest_;     // of the output type
  int max_exponent_;  // kPowerOfTwo: OCP MX's emax
  float minimum_;     // kRange: qmin, qmax
  float maximum_;
  float steps_;  // kRange: qmax - qmin
  float tensor_scale_ = 1;
};

// The error of an element that is NaN or infinite, with its index in the flattened x.
absl::Status NonFiniteError(absl::string_view operation, int64_t index, float value);

}  // namespace quantd::rules

#endif  // QUANTD_SRC_RULES_SCALE_RULES_H_
