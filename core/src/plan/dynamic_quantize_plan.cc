// PlanDynamicQuantize: determines the rule for the scales, and their number.
#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "plan/granularity.h"
#include "plan/operands.h"
#include "quantd/dynamic_quantize.h"
#include "quantd/field_error.h"

namespace quantd {
namespace {

constexpr DataType kDynamicInputTypes[] = {DataType::kFloat, DataType::kFloat16,
                                           DataType::kBfloat16, DataType::kInt32};
constexpr DataType kDynamicScaleTypes[] = {DataType::kFloat, DataType::kFloat16,
                                           DataType::kBfloat16, DataType::kFloat8E8M0,
                                           DataType::kFloat8E4M3Fn};

// The result of a tensor with elements has at most one scale per element. An empty one could claim
// any number by its shape, such as [0, 2^40] along axis 1, so this is the limit for it.
constexpr int64_t kScalesOfEmptyTensor = 65536;

absl::StatusOr<ScaleRule> Rule(DataType output, DataType scale_type, Symmetry symmetry) {
  if (scale_type == DataType::kFloat8E8M0) {
    std::vector<DataType> elements;
    for (const DataTypeInfo& info : kDataTypes) {
      if (info.mx_exponent != 0) elements.push_back(info.type);
    }
    absl::Status status =
        CheckType(output, "output_type", "a scale_type of FLOAT8E8M0 works with", elements);
    if (!status.ok()) return status;
    return ScaleRule::kPowerOfTwo;
  }
  if (scale_type == DataType::kFloat8E4M3Fn && output == DataType::kFloat4E2M1) {
    return ScaleRule::kTwoLevel;
  }
  // FLOAT8, FLOAT6 and FLOAT4 are always symmetric, because ASYMMETRIC is the default.
  const bool symmetric =
      symmetry == Symmetry::kSymmetric || Info(output).kind != DataTypeKind::kInteger;
  return symmetric ? ScaleRule::kSymmetric : ScaleRule::kRange;
}

absl::Status CheckScaleCount(const DynamicQuantizePlan& plan) {
  if (plan.elements > 0 || plan.layout.scale_count <= kScalesOfEmptyTensor) {
    return absl::OkStatus();
  }
  return FieldError(
      "x", absl::StrCat("x of shape ", ShapeString(plan.shape), " is empty and would have ",
                        plan.layout.scale_count, " scales, at most ", kScalesOfEmptyTensor,
                        " are made for an empty tensor"));
}

}  // namespace

absl::StatusOr<DynamicQuantizePlan> PlanDynamicQuantize(
    const DynamicQuantizeParameters& parameters) {
  DynamicQuantizePlan plan;
  const DataType output =
      parameters.output_type == DataType::kUnspecified ? DataType::kUint8 : parameters.output_type;
  plan.scale_type =
      parameters.scale_type == DataType::kUnspecified ? DataType::kFloat : parameters.scale_type;
  // Types.
  absl::Status status =
      CheckType(parameters.x.data_type, "x", "DynamicQuantize takes", kDynamicInputTypes);
  if (!status.ok()) return status;
  status = CheckType(output, "output_type", "DynamicQuantize gives", QuantizedTypes());
  if (!status.ok()) return status;
  status = CheckType(plan.scale_type, "scale_type", "DynamicQuantize gives", kDynamicScaleTypes);
  if (!status.ok()) return status;
  absl::StatusOr<ScaleRule> rule = Rule(output, plan.scale_type, parameters.symmetry);
  if (!rule.ok()) return rule.status();
  plan.rule = *rule;
  plan.saturate = parameters.saturate;
  plan.report_error = parameters.report_error;
  plan.non_finite = parameters.non_finite;
  plan.has_zero_point = plan.rule == ScaleRule::kRange;
  plan.has_tensor_scale = plan.rule == ScaleRule::kTwoLevel;
  if (Info(output).kind == DataTypeKind::kInteger) {
    plan.minimum = output == DataType::kInt8 ? -127 : static_cast<int32_t>(Info(output).minimum);
    plan.maximum = static_cast<int32_t>(Info(output).maximum);
  }

  // Shapes, then bytes.
  if (absl::StatusOr<int64_t> count = ElementCount(parameters.x.shape, "x"); !count.ok()) {
    return count.status();
  }
  absl::StatusOr<RequestedBlocks> requested =
      BlocksOfRequest(parameters.granularity, parameters.x.shape);
  if (!requested.ok()) return requested.status();
  status = FillBase(parameters.x, output, requested->blocks, plan);
  if (!status.ok()) return status;
  status = CheckScaleCount(plan);
  if (!status.ok()) return status;
  plan.scale_shape = requested->scale_shape;
  plan.scale_bytes = ByteSize(plan.scale_type, plan.layout.scale_count);
  if (plan.has_zero_point) plan.zero_point_bytes = ByteSize(output, plan.layout.scale_count);
  return plan;
}

}  // namespace quantd
