// PlanDequantize: determines the output type, and the scales (multiplied by tensor_scale) and zero
// points.
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "plan/granularity.h"
#include "plan/operands.h"
#include "quantd/dequantize.h"
#include "quantd/field_error.h"

namespace quantd {
namespace {

constexpr DataType kOutputTypes[] = {DataType::kFloat, DataType::kFloat16, DataType::kBfloat16};
// The scale types of Quantize, and FLOAT8E4M3FN, which DynamicQuantize makes.
constexpr DataType kDequantizeScaleTypes[] = {DataType::kFloat,      DataType::kFloat16,
                                              DataType::kBfloat16,   DataType::kInt32,
                                              DataType::kFloat8E8M0, DataType::kFloat8E4M3Fn};

absl::Status CheckInputType(DataType type) {
  const absl::Span<const DataType> quantized = QuantizedTypes();
  std::vector<DataType> types(quantized.begin(), quantized.end());
  types.push_back(DataType::kInt32);
  return CheckType(type, "x", "Dequantize takes", types);
}

absl::StatusOr<DataType> OutputType(const DequantizeParameters& parameters) {
  const DataType wanted = parameters.output_type;
  if (wanted != DataType::kUnspecified) {
    absl::Status status = CheckType(wanted, "output_type", "Dequantize gives", kOutputTypes);
    if (!status.ok()) return status;
    return wanted;
  }
  const DataType scale = parameters.scale.data_type;
  if (Info(scale).kind == DataTypeKind::kFloat) return scale;
  return FieldError("output_type", absl::StrCat("output_type is not set, and scale is ",
                                                Name(scale), ", which is not a type of y"));
}

// x's type; for integers also INT32.
absl::Status CheckZeroPointType(DataType zero_point, DataType x) {
  if (zero_point == x) return absl::OkStatus();
  if (Info(x).kind != DataTypeKind::kInteger || x == DataType::kInt32) {
    return CheckType(zero_point, "zero_point", "with this x Dequantize takes", {x});
  }
  return CheckType(zero_point, "zero_point", "with this x Dequantize takes", {x, DataType::kInt32});
}

absl::Status CheckTensorScale(const TensorView& tensor_scale) {
  absl::Status status =
      CheckType(tensor_scale.data_type, "tensor_scale", "Dequantize takes", {DataType::kFloat});
  if (!status.ok()) return status;
  absl::StatusOr<int64_t> count = ElementCount(tensor_scale.shape, "tensor_scale");
  if (!count.ok()) return count.status();
  if (*count == 1) return absl::OkStatus();
  return FieldError("tensor_scale",
                    absl::StrCat("tensor_scale has ", *count, " elements, it takes 1"));
}

absl::Status TakeZeroPoints(const TensorView& zero_point, int64_t count, DequantizePlan& plan) {
  if (Info(plan.input_type).kind == DataTypeKind::kFloat8) return CheckZeroBytes(zero_point, count);
  if (!AllZero(zero_point.bytes)) plan.zero_points = {zero_point.data_type, zero_point.bytes};
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<DequantizePlan> PlanDequantize(const DequantizeParameters& parameters) {
  DequantizePlan plan;
  const std::optional<TensorView>& zero_point = parameters.zero_point;
  const std::optional<TensorView>& tensor_scale = parameters.tensor_scale;
  // Types.
  absl::Status status = CheckInputType(parameters.x.data_type);
  if (!status.ok()) return status;
  status =
      CheckType(parameters.scale.data_type, "scale", "Dequantize takes", kDequantizeScaleTypes);
  if (!status.ok()) return status;
  if (zero_point.has_value()) {
    status = CheckZeroPointType(zero_point->data_type, parameters.x.data_type);
    if (!status.ok()) return status;
  }
  absl::StatusOr<DataType> output_type = OutputType(parameters);
  if (!output_type.ok()) return output_type.status();

  // Shapes.
  absl::StatusOr<Blocks> blocks =
      BlocksOfScale(parameters.granularity, parameters.x.shape, parameters.scale.shape);
  if (!blocks.ok()) return blocks.status();
  if (zero_point.has_value()) {
    status = CheckZeroPointShape(zero_point->shape, parameters.scale.shape);
    if (!status.ok()) return status;
  }
  if (tensor_scale.has_value()) {
    status = CheckTensorScale(*tensor_scale);
    if (!status.ok()) return status;
  }

  // The sizes, and only then the contents.
  status = FillBase(parameters.x, *output_type, *blocks, plan);
  if (!status.ok()) return status;
  const absl::StatusOr<int64_t> scale_count = CheckTensor(parameters.scale, "scale");
  if (!scale_count.ok()) return scale_count.status();
  if (zero_point.has_value()) {
    absl::StatusOr<int64_t> count = CheckTensor(*zero_point, "zero_point");
    if (!count.ok()) return count.status();
  }
  if (tensor_scale.has_value()) {
    absl::StatusOr<int64_t> count = CheckTensor(*tensor_scale, "tensor_scale");
    if (!count.ok()) return count.status();
  }
  plan.scales = {parameters.scale.data_type, parameters.scale.bytes};
  plan.has_tensor_scale = tensor_scale.has_value();
  if (plan.has_tensor_scale) {
    std::memcpy(&plan.tensor_scale, tensor_scale->bytes.data(), sizeof(plan.tensor_scale));
  }
  if (zero_point.has_value()) {
    status = TakeZeroPoints(*zero_point, *scale_count, plan);
    if (!status.ok()) return status;
  }
  return plan;
}

}  // namespace quantd
