#include "reference/operations.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "reference/elements.h"
#include "reference/scale_rules.h"

namespace quantd::reference {
namespace {

// x of the error report: an INT32 exactly.
double ExactValue(DataType type, uint32_t code) {
  return type == DataType::kInt32 ? static_cast<double>(DecodeInteger(type, code))
                                  : static_cast<double>(DecodeFloat(type, code));
}

float ZeroPointAt(const FloatColumn& zero_points, size_t index) {
  return zero_points.empty() ? 0.0f : zero_points[index];
}

void FillZero(absl::Span<uint8_t> bytes) { std::fill(bytes.begin(), bytes.end(), uint8_t{0}); }

}  // namespace

std::vector<int64_t> ScaleIndexes(const PlanBase& plan) {
  std::vector<int64_t> indexes(static_cast<size_t>(plan.elements));
  for (int64_t element = 0; element < plan.elements; ++element) {
    // From the innermost dimension out, as the digits of a number.
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

void ReferenceQuantize(const QuantizePlan& plan, absl::Span<const uint8_t> x, absl::Span<uint8_t> y,
                       QuantizationError* error) {
  FillZero(y);
  const ElementRule rule = RuleOf(plan);
  const FloatColumn& restore_scales =
      plan.dequantize_scales.empty() ? plan.scales : plan.dequantize_scales;
  const std::vector<int64_t> indexes = ScaleIndexes(plan);
  ErrorSums sums;
  for (int64_t i = 0; i < plan.elements; ++i) {
    const size_t block = static_cast<size_t>(indexes[static_cast<size_t>(i)]);
    const uint32_t code = LoadCode(plan.input_type, x.data(), i);
    const float zero_point = ZeroPointAt(plan.zero_points, block);
    const QuantizedElement element =
        QuantizeElement(rule, DecodeFloat(plan.input_type, code), plan.scales[block], zero_point);
    StoreCode(plan.output_type, y.data(), i, element.code);
    AddElement(sums, ExactValue(plan.input_type, code),
               RestoreElement(plan.output_type, element.code, restore_scales[block], zero_point),
               element.saturated);
  }
  if (error != nullptr) *error = sums.Finish();
}

void ReferenceDequantize(const DequantizePlan& plan, absl::Span<const uint8_t> x,
                         absl::Span<uint8_t> y) {
  const std::vector<int64_t> indexes = ScaleIndexes(plan);
  for (int64_t i = 0; i < plan.elements; ++i) {
    const size_t block = static_cast<size_t>(indexes[static_cast<size_t>(i)]);
    const uint32_t code = LoadCode(plan.input_type, x.data(), i);
    const int32_t zero_point = plan.zero_points.empty() ? 0 : plan.zero_points[block];
    const float value = DequantizeElement(plan.input_type, code, plan.scales[block], zero_point);
    StoreCode(plan.output_type, y.data(), i, EncodeOutput(plan.output_type, value));
  }
}

absl::Status ReferenceDynamicQuantize(const DynamicQuantizePlan& plan, absl::Span<const uint8_t> x,
                                      const DynamicQuantizeOutput& output,
                                      QuantizationError* error) {
  for (absl::Span<uint8_t> bytes :
       {output.y, output.scale, output.zero_point, output.tensor_scale}) {
    FillZero(bytes);
  }
  const std::vector<int64_t> indexes = ScaleIndexes(plan);
  const size_t scale_count = static_cast<size_t>(plan.layout.scale_count);

  // The ranges of the blocks, and of all.
  Range tensor;
  std::vector<Range> ranges(scale_count);
  for (int64_t i = 0; i < plan.elements; ++i) {
    const float value = DecodeFloat(plan.input_type, LoadCode(plan.input_type, x.data(), i));
    if (std::isfinite(value)) {
      tensor.Include(value);
      ranges[static_cast<size_t>(indexes[static_cast<size_t>(i)])].Include(value);
    } else if (plan.non_finite == NonFinite::kReject) {
      return NonFiniteError(i, value);
    }
  }

  // Their scales.
  ScaleMaker maker(plan);
  if (plan.has_tensor_scale) {
    const ScaleFault fault = maker.SetTensorScale(tensor);
    if (fault != ScaleFault::kNone) return maker.Error(-1, tensor, fault);
    StoreCode(DataType::kFloat, output.tensor_scale.data(), 0,
              std::bit_cast<uint32_t>(maker.tensor_scale()));
  }
  std::vector<BlockScale> scales(scale_count);
  for (size_t block = 0; block < scale_count; ++block) {
    const int64_t index = static_cast<int64_t>(block);
    scales[block] = maker.Make(ranges[block]);
    if (scales[block].fault != ScaleFault::kNone) {
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
    const BlockScale& block = scales[static_cast<size_t>(indexes[static_cast<size_t>(i)])];
    const uint32_t code = LoadCode(plan.input_type, x.data(), i);
    const float zero_point = static_cast<float>(block.zero_point);
    const QuantizedElement element =
        QuantizeElement(rule, DecodeFloat(plan.input_type, code), block.scale, zero_point);
    StoreCode(plan.output_type, output.y.data(), i, element.code);
    AddElement(sums, ExactValue(plan.input_type, code),
               RestoreElement(plan.output_type, element.code, block.scale, zero_point),
               element.saturated);
  }
  if (error != nullptr) *error = sums.Finish();
  return absl::OkStatus();
}

}  // namespace quantd::reference
