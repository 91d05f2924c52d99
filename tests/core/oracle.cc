#include "oracle.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "rules/elements.h"
#include "types/codes.h"
#include "types/small_float.h"

namespace quantd::oracle {
namespace {

using rules::ElementRule;

ElementRule RuleOf(const QuantizePlan& plan) {
  return {plan.output_type,    plan.precision, plan.zero_point_order, plan.saturate,
          plan.has_zero_point, plan.minimum,   plan.maximum};
}

ElementRule RuleOf(const DynamicQuantizePlan& plan) {
  return {plan.output_type, DataType::kFloat,    ZeroPointOrder::kAfterRounding,
          plan.saturate,    plan.has_zero_point, plan.minimum,
          plan.maximum};
}

// x^ of the error report: like DequantizeElement, in double. `zero_point` is a value, not a code.
double RestoreElement(DataType type, uint32_t code, double scale, double zero_point) {
  return (static_cast<double>(DecodeFloat(type, code)) - zero_point) * scale;
}

// x of the error report: an INT32 exactly.
double ExactValue(DataType type, uint32_t code) {
  return type == DataType::kInt32 ? static_cast<double>(DecodeInteger(type, code))
                                  : static_cast<double>(DecodeFloat(type, code));
}

uint32_t CodeAt(const ScaleOperand& operand, int64_t index) {
  return LoadCode(operand.type, operand.bytes.data(), index);
}

void FillZero(absl::Span<uint8_t> bytes) { std::fill(bytes.begin(), bytes.end(), uint8_t{0}); }

}  // namespace

float ScaleAt(const ScaleOperand& operand, int64_t index, float otherwise) {
  return operand.empty() ? otherwise : DecodeFloat(operand.type, CodeAt(operand, index));
}

int32_t ZeroPointAt(const ScaleOperand& operand, int64_t index) {
  if (operand.empty()) return 0;
  const uint32_t code = CodeAt(operand, index);
  if (Info(operand.type).kind != DataTypeKind::kInteger) return static_cast<int32_t>(code);
  return static_cast<int32_t>(DecodeInteger(operand.type, code));
}

rules::BlockRule BlockRuleOf(const DynamicQuantizePlan& plan) {
  return {plan.rule, plan.scale_type, plan.output_type, plan.minimum, plan.maximum};
}

uint32_t EncodeOutput(DataType output_type, float value) {
  return output_type == DataType::kFloat ? std::bit_cast<uint32_t>(value)
                                         : EncodeFormat(FormatOf(output_type), value, false);
}

void AddElement(ErrorSums& sums, double x, double restored, bool saturated) {
  sums.saturated_elements += saturated ? 1 : 0;
  if (!std::isfinite(x)) {
    ++sums.non_finite_elements;
    return;
  }
  const double difference = std::fabs(x - restored);
  ErrorSums element;
  element.signal = x * x;
  element.noise = difference * difference;
  element.max_absolute_error = difference;
  element.finite_elements = 1;
  sums.Add(element);
}

std::vector<int64_t> ScaleIndexes(const PlanBase& plan) {
  std::vector<int64_t> indexes(static_cast<size_t>(plan.elements));
  for (int64_t element = 0; element < plan.elements; ++element) {
    // From the innermost dimension outwards, like the digits of a number.
    int64_t rest = element;
    int64_t index = 0;
    int64_t stride = 1;
    for (size_t i = plan.shape.size(); i-- > 0;) {
      const int64_t coordinate = rest % plan.shape[i];
      rest /= plan.shape[i];
      index += coordinate / plan.block_shape[i] * stride;
      stride *= (plan.shape[i] + plan.block_shape[i] - 1) / plan.block_shape[i];
    }
    indexes[static_cast<size_t>(element)] = index;
  }
  return indexes;
}

void Quantize(const QuantizePlan& plan, absl::Span<const uint8_t> x, absl::Span<uint8_t> y,
              QuantizationError* error) {
  FillZero(y);
  const ElementRule rule = RuleOf(plan);
  const std::vector<int64_t> indexes = ScaleIndexes(plan);
  ErrorSums sums;
  for (int64_t i = 0; i < plan.elements; ++i) {
    const int64_t block = indexes[static_cast<size_t>(i)];
    const uint32_t code = LoadCode(plan.input_type, x.data(), i);
    const float scale = ScaleAt(plan.scales, block);
    const float zero_point = ScaleAt(plan.zero_points, block, 0);
    const rules::QuantizedElement element =
        rules::QuantizeElement(rule, DecodeFloat(plan.input_type, code), scale, zero_point);
    StoreCode(plan.output_type, y.data(), i, element.code);
    AddElement(sums, ExactValue(plan.input_type, code),
               RestoreElement(plan.output_type, element.code, scale, zero_point),
               element.saturated);
  }
  if (error != nullptr) *error = sums.Finish();
}

void Dequantize(const DequantizePlan& plan, absl::Span<const uint8_t> x, absl::Span<uint8_t> y) {
  const std::vector<int64_t> indexes = ScaleIndexes(plan);
  for (int64_t i = 0; i < plan.elements; ++i) {
    const int64_t block = indexes[static_cast<size_t>(i)];
    const uint32_t code = LoadCode(plan.input_type, x.data(), i);
    const int32_t zero_point = ZeroPointAt(plan.zero_points, block);
    float scale = ScaleAt(plan.scales, block);
    if (plan.has_tensor_scale) scale *= plan.tensor_scale;
    const float value = rules::DequantizeElement(plan.input_type, code, scale, zero_point);
    StoreCode(plan.output_type, y.data(), i, EncodeOutput(plan.output_type, value));
  }
}

absl::Status DynamicQuantize(const DynamicQuantizePlan& plan, absl::Span<const uint8_t> x,
                             const DynamicQuantizeOutput& output, QuantizationError* error) {
  for (absl::Span<uint8_t> bytes :
       {output.y, output.scale, output.zero_point, output.tensor_scale}) {
    FillZero(bytes);
  }
  const std::vector<int64_t> indexes = ScaleIndexes(plan);
  const size_t scale_count = static_cast<size_t>(plan.layout.scale_count);

  // The ranges of the blocks, and the range of the tensor.
  rules::Range tensor;
  std::vector<rules::Range> ranges(scale_count);
  for (int64_t i = 0; i < plan.elements; ++i) {
    const float value = DecodeFloat(plan.input_type, LoadCode(plan.input_type, x.data(), i));
    if (std::isfinite(value)) {
      tensor.Include(value);
      ranges[static_cast<size_t>(indexes[static_cast<size_t>(i)])].Include(value);
    } else if (plan.non_finite == NonFinite::kReject) {
      return rules::NonFiniteError("DynamicQuantize", i, value);
    }
  }

  // The scales.
  rules::ScaleMaker maker(BlockRuleOf(plan));
  if (plan.has_tensor_scale) {
    const rules::ScaleFault fault = maker.SetTensorScale(tensor);
    if (fault != rules::ScaleFault::kNone) return maker.Error(-1, tensor, fault);
    StoreCode(DataType::kFloat, output.tensor_scale.data(), 0,
              std::bit_cast<uint32_t>(maker.tensor_scale()));
  }
  std::vector<rules::BlockScale> scales(scale_count);
  for (size_t block = 0; block < scale_count; ++block) {
    const int64_t index = static_cast<int64_t>(block);
    scales[block] = maker.Make(ranges[block]);
    if (scales[block].fault != rules::ScaleFault::kNone) {
      return maker.Error(index, ranges[block], scales[block].fault);
    }
    StoreCode(plan.scale_type, output.scale.data(), index, scales[block].code);
    if (plan.has_zero_point) {
      StoreCode(plan.output_type, output.zero_point.data(), index,
                static_cast<uint32_t>(scales[block].zero_point));
    }
  }

  // The elements.
  const ElementRule rule = RuleOf(plan);
  ErrorSums sums;
  for (int64_t i = 0; i < plan.elements; ++i) {
    const rules::BlockScale& block = scales[static_cast<size_t>(indexes[static_cast<size_t>(i)])];
    const uint32_t code = LoadCode(plan.input_type, x.data(), i);
    const float zero_point = static_cast<float>(block.zero_point);
    const rules::QuantizedElement element =
        rules::QuantizeElement(rule, DecodeFloat(plan.input_type, code), block.scale, zero_point);
    StoreCode(plan.output_type, output.y.data(), i, element.code);
    AddElement(sums, ExactValue(plan.input_type, code),
               RestoreElement(plan.output_type, element.code, block.scale, zero_point),
               element.saturated);
  }
  if (error != nullptr) *error = sums.Finish();
  return absl::OkStatus();
}

}  // namespace quantd::oracle
