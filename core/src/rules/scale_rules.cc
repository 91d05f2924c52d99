#include "rules/scale_rules.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "quantd/field_error.h"
#include "rules/elements.h"

namespace quantd::rules {
namespace {

ScaleFault FaultOf(float scale) {
  if (scale == 0) return ScaleFault::kUnderflow;
  return std::isfinite(scale) ? ScaleFault::kNone : ScaleFault::kOverflow;
}

}  // namespace

ScaleMaker::ScaleMaker(const BlockRule& rule)
    : rule_(rule.scale_rule),
      scale_type_(rule.scale_type),
      largest_(Info(rule.output_type).largest),
      max_exponent_(Info(rule.output_type).mx_exponent),
      minimum_(static_cast<float>(rule.minimum)),
      maximum_(static_cast<float>(rule.maximum)),
      steps_(static_cast<float>(rule.maximum - rule.minimum)) {}

ScaleFault ScaleMaker::SetTensorScale(const Range& tensor) {
  const float largest = tensor.largest_magnitude();
  if (largest == 0) return ScaleFault::kNone;
  tensor_scale_ = largest / (kE4M3Largest * kFloat4Largest);
  return FaultOf(tensor_scale_);
}

BlockScale ScaleMaker::Rounded(float scale) const {
  BlockScale result;
  result.code = scale_type_ == DataType::kFloat
                    ? std::bit_cast<uint32_t>(scale)
                    : EncodeFormat(FormatOf(scale_type_), scale, /*saturate=*/false);
  result.scale = DecodeFloat(scale_type_, result.code);
  result.fault = FaultOf(result.scale);
  return result;
}

BlockScale ScaleMaker::PowerOfTwo(float largest) const {
  BlockScale result;
  result.code = static_cast<uint32_t>(PowerOfTwoCode(std::ilogb(largest)));
  result.scale = DecodeE8M0(static_cast<uint8_t>(result.code));
  return result;
}

BlockScale ScaleMaker::TwoLevel(float wanted) const {
  BlockScale result;
  result.code = EncodeFloat8(DataType::kFloat8E4M3Fn, wanted, /*saturate=*/true);
  result.scale = DecodeFloat(DataType::kFloat8E4M3Fn, result.code) * tensor_scale_;
  result.fault = FaultOf(result.scale);
  return result;
}

BlockScale ScaleMaker::Make(const Range& block) const {
  const float largest = block.largest_magnitude();
  if (largest == 0) {
    BlockScale one;
    if (scale_type_ == DataType::kFloat8E8M0) {
      one.code = 0x7F;
    } else {
      one.code = Rounded(1).code;
    }
    if (rule_ == ScaleRule::kTwoLevel) one.scale = tensor_scale_;
    return one;
  }
  switch (rule_) {
    case ScaleRule::kPowerOfTwo:
      return PowerOfTwo(largest);
    case ScaleRule::kTwoLevel:
      return TwoLevel(Unrounded<ScaleRule::kTwoLevel>(block));
    case ScaleRule::kSymmetric:
      return Rounded(Unrounded<ScaleRule::kSymmetric>(block));
    case ScaleRule::kRange:
      break;
  }
  BlockScale result = Rounded(Unrounded<ScaleRule::kRange>(block));
  if (result.fault != ScaleFault::kNone) return result;
  result.zero_point = static_cast<int32_t>(std::nearbyint(UnroundedZeroPoint(block, result.scale)));
  return result;
}

absl::Status ScaleMaker::Error(int64_t index, const Range& range, ScaleFault fault) const {
  const std::string name = index < 0 ? "y_tensor_scale" : absl::StrCat("y_scale[", index, "]");
  const DataType type = index < 0 ? DataType::kFloat : scale_type_;
  return FieldError(
      "x", absl::StrCat("x has values from ", range.minimum, " to ", range.maximum, ", their ",
                        name, fault == ScaleFault::kUnderflow ? " underflows to 0" : " overflows",
                        " in ", Name(type)));
}

absl::Status NonFiniteError(absl::string_view operation, int64_t index, float value) {
  return FieldError("x", absl::StrCat("x[", index, "] is ", value, ", ", operation,
                                      " takes finite values unless non_finite is IGNORE"));
}

}  // namespace quantd::rules
