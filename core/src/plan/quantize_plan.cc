// PlanQuantize: determines the output type, how x / scale is computed, and the scales and zero
// points in the form for kernels.
#include <algorithm>
#include <array>
#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/kernel_table.h"
#include "kernels/read_elements.h"
#include "plan/granularity.h"
#include "plan/operands.h"
#include "quantd/field_error.h"
#include "quantd/quantize.h"
#include "types/codes.h"
#include "types/small_float.h"

namespace quantd {
namespace {

constexpr DataType kInputTypes[] = {DataType::kFloat, DataType::kFloat16, DataType::kBfloat16,
                                    DataType::kInt32};
constexpr DataType kScaleTypes[] = {DataType::kFloat, DataType::kFloat16, DataType::kBfloat16,
                                    DataType::kInt32, DataType::kFloat8E8M0};
constexpr DataType kPrecisions[] = {DataType::kFloat, DataType::kFloat16, DataType::kBfloat16};

bool BeforeRounding(const QuantizeParameters& parameters) {
  return parameters.zero_point_order == ZeroPointOrder::kBeforeRounding;
}

// zero_point's type, or else output_type, or else UINT8. With BEFORE_ROUNDING output_type takes
// precedence, because the zero point may be INT32, INT8 or UINT8 for any output.
absl::StatusOr<DataType> OutputType(const QuantizeParameters& parameters) {
  const DataType wanted = parameters.output_type;
  if (wanted != DataType::kUnspecified) {
    absl::Status status = CheckType(wanted, "output_type", "Quantize gives", QuantizedTypes());
    if (!status.ok()) return status;
  }
  DataType output = wanted;
  if (parameters.zero_point.has_value()) {
    const DataType given = parameters.zero_point->data_type;
    absl::Status status;
    if (BeforeRounding(parameters)) {
      if (given != wanted) {
        status = CheckType(given, "zero_point", "BEFORE_ROUNDING takes the output's type or",
                           {DataType::kInt32, DataType::kInt8, DataType::kUint8});
      }
      if (output == DataType::kUnspecified && given != DataType::kInt32) output = given;
    } else {
      status = CheckType(given, "zero_point", "Quantize takes", QuantizedTypes());
      if (status.ok() && wanted != DataType::kUnspecified && wanted != given) {
        status = FieldError("output_type", absl::StrCat("output_type is ", Name(wanted),
                                                        ", zero_point is ", Name(given)));
      }
      output = given;
    }
    if (!status.ok()) return status;
  }
  if (output == DataType::kUnspecified) output = DataType::kUint8;
  if (BeforeRounding(parameters) && Info(output).kind != DataTypeKind::kInteger) {
    return FieldError("zero_point_order",
                      absl::StrCat("zero_point_order is BEFORE_ROUNDING, the output is ",
                                   Name(output), ": only integers are possible"));
  }
  return output;
}

absl::StatusOr<DataType> Precision(const QuantizeParameters& parameters) {
  const DataType wanted = parameters.precision;
  if (wanted != DataType::kUnspecified) {
    absl::Status status = CheckType(wanted, "precision", "Quantize divides in", kPrecisions);
    if (!status.ok()) return status;
  }
  if (BeforeRounding(parameters)) {
    if (wanted != DataType::kUnspecified && wanted != DataType::kFloat) {
      return FieldError("precision", absl::StrCat("precision is ", Name(wanted),
                                                  ", BEFORE_ROUNDING divides in FLOAT"));
    }
    return DataType::kFloat;
  }
  if (wanted != DataType::kUnspecified) return wanted;
  const DataType scale = parameters.scale.data_type;
  return Info(scale).kind == DataTypeKind::kFloat ? scale : DataType::kFloat;
}

// The error for the first scale that can't divide, unchanged or rounded to `precision`. REQUIRES:
// there is one.
absl::Status ScaleError(const ScaleOperand& scales, DataType precision) {
  int64_t index = 0;
  float scale = 0;
  for (bool divides = true; divides; ++index) {
    scale = DecodeFloat(scales.type, LoadCode(scales.type, scales.bytes.data(), index));
    divides = IsDivisor(scale) && IsDivisor(RoundTo(precision, scale));
  }
  const std::string given = absl::StrCat("scale[", index - 1, "] is ", scale);
  if (!IsDivisor(scale)) {
    return FieldError("scale", absl::StrCat(given, ", scales are finite and not 0"));
  }
  return FieldError("scale", absl::StrCat(given, ", which becomes ", RoundTo(precision, scale),
                                          " in ", Name(precision)));
}

// Whether all scales have a reciprocal. INVALID_ARGUMENT: one can't divide.
absl::StatusOr<bool> CheckScales(const ScaleOperand& scales, int64_t count, DataType precision) {
  const KernelTable& kernels = Kernels();
  const auto size = static_cast<size_t>(count);
  const float* const in_place = FloatsInPlace(scales.type, scales.bytes.data());
  const bool rounds = precision != DataType::kFloat && precision != scales.type;
  constexpr size_t kTile = 1024;
  alignas(64) std::array<float, kTile> values;
  const bool copies = in_place == nullptr || rounds;
  const size_t step = copies ? kTile : size;
  bool have_reciprocals = true;
  for (size_t first = 0; first < size; first += step) {
    const size_t tile = std::min(step, size - first);
    if (copies) ReadFloats(scales.type, scales.bytes.data(), first, tile, values.data());
    const float* const floats = copies ? values.data() : in_place;
    const Magnitudes given = kernels.magnitudes(floats, tile);
    if (!IsDivisor(given)) return ScaleError(scales, precision);
    have_reciprocals &= HasReciprocal(given);
    if (!rounds) continue;
    RoundFloats(precision, values.data(), tile);
    if (!IsDivisor(kernels.magnitudes(floats, tile))) return ScaleError(scales, precision);
  }
  return have_reciprocals;
}

absl::Status TakeZeroPoints(const TensorView& zero_point, int64_t count, QuantizePlan& plan) {
  const DataTypeKind kind = Info(plan.output_type).kind;
  if (kind == DataTypeKind::kFloat8) return CheckZeroBytes(zero_point, count);
  if (kind == DataTypeKind::kMiniFloat || !AllZero(zero_point.bytes)) {
    plan.zero_points = {zero_point.data_type, zero_point.bytes};
  }
  return absl::OkStatus();
}

Quotient ChooseQuotient(const QuantizePlan& plan, bool have_reciprocals) {
  if (plan.precision == DataType::kFloat16) return Quotient::kGivenFloat16;
  if (plan.precision == DataType::kBfloat16) return Quotient::kGivenBfloat16;
  const DataTypeInfo& output = Info(plan.output_type);
  if (output.kind != DataTypeKind::kInteger || output.bits > 8 ||
      plan.zero_point_order == ZeroPointOrder::kBeforeRounding) {
    return Quotient::kDivide;
  }
  return have_reciprocals ? Quotient::kReciprocal : Quotient::kDivide;
}

}  // namespace

absl::StatusOr<QuantizePlan> PlanQuantize(const QuantizeParameters& parameters) {
  QuantizePlan plan;
  // Types.
  absl::Status status = CheckType(parameters.x.data_type, "x", "Quantize takes", kInputTypes);
  if (!status.ok()) return status;
  status = CheckType(parameters.scale.data_type, "scale", "Quantize takes", kScaleTypes);
  if (!status.ok()) return status;
  absl::StatusOr<DataType> output_type = OutputType(parameters);
  if (!output_type.ok()) return output_type.status();
  absl::StatusOr<DataType> precision = Precision(parameters);
  if (!precision.ok()) return precision.status();
  plan.precision = *precision;
  plan.zero_point_order = parameters.zero_point_order;
  plan.saturate = parameters.saturate;
  plan.report_error = parameters.report_error;
  plan.has_zero_point = parameters.zero_point.has_value();
  if (Info(*output_type).kind == DataTypeKind::kInteger) {
    plan.minimum = static_cast<int32_t>(Info(*output_type).minimum);
    plan.maximum = static_cast<int32_t>(Info(*output_type).maximum);
  }

  // Shapes.
  absl::StatusOr<Blocks> blocks =
      BlocksOfScale(parameters.granularity, parameters.x.shape, parameters.scale.shape);
  if (!blocks.ok()) return blocks.status();
  if (plan.has_zero_point) {
    status = CheckZeroPointShape(parameters.zero_point->shape, parameters.scale.shape);
    if (!status.ok()) return status;
  }

  // The sizes, and only then the contents.
  status = FillBase(parameters.x, *output_type, *blocks, plan);
  if (!status.ok()) return status;
  const absl::StatusOr<int64_t> scale_count = CheckTensor(parameters.scale, "scale");
  if (!scale_count.ok()) return scale_count.status();
  if (plan.has_zero_point) {
    absl::StatusOr<int64_t> count = CheckTensor(*parameters.zero_point, "zero_point");
    if (!count.ok()) return count.status();
  }
  plan.scales = {parameters.scale.data_type, parameters.scale.bytes};
  const absl::StatusOr<bool> have_reciprocals =
      CheckScales(plan.scales, *scale_count, plan.precision);
  if (!have_reciprocals.ok()) return have_reciprocals.status();
  if (plan.has_zero_point) {
    status = TakeZeroPoints(*parameters.zero_point, *scale_count, plan);
    if (!status.ok()) return status;
  }
  plan.quotient = ChooseQuotient(plan, *have_reciprocals);
  return plan;
}

}  // namespace quantd
