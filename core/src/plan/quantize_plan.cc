// PlanQuantize: which type comes out, how x / scale is computed, and the scales and zero points as
// the kernels want them.
#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "plan/blocks.h"
#include "plan/operands.h"
#include "quantd/field_error.h"
#include "quantd/quantize.h"
#include "types/small_float.h"

namespace quantd {
namespace {

constexpr DataType kInputTypes[] = {DataType::kFloat, DataType::kFloat16, DataType::kBfloat16,
                                    DataType::kInt32};
constexpr DataType kScaleTypes[] = {DataType::kFloat, DataType::kFloat16, DataType::kBfloat16,
                                    DataType::kInt32, DataType::kFloat8E8M0};
constexpr DataType kPrecisions[] = {DataType::kFloat, DataType::kFloat16, DataType::kBfloat16};

// Two fused multiply-adds equal the rounded division for these scales; see src/kernels.
constexpr float kReciprocalSmallest = 0x1p-100f;
constexpr float kReciprocalLargest = 0x1p76f;

bool BeforeRounding(const QuantizeParameters& parameters) {
  return parameters.zero_point_order == ZeroPointOrder::kBeforeRounding;
}

// zero_point's type, else output_type, else UINT8. With BEFORE_ROUNDING output_type comes first,
// because a zero point may be INT32, INT8 or UINT8 whatever the output is.
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

absl::Status ScaleError(size_t index, float value, absl::string_view what) {
  return FieldError("scale", absl::StrCat("scale[", index, "] is ", value, what));
}

// All that do are divisors: mostly one look at the scales is enough.
bool HasReciprocal(float scale) {
  return std::fabs(scale) >= kReciprocalSmallest && std::fabs(scale) <= kReciprocalLargest;
}
bool IsDivisor(float scale) { return scale != 0 && std::fabs(scale) < INFINITY; }

// Reads the scales and rounds them to the plan's precision. Returns whether all that arrived have a
// reciprocal.
absl::StatusOr<bool> ReadScales(const TensorView& scale, int64_t count, QuantizePlan& plan) {
  plan.scales = ReadFloats(scale, count);
  const bool cast = plan.precision != DataType::kFloat && plan.precision != scale.data_type;
  const bool have_reciprocals = All(plan.scales, HasReciprocal);
  if (!have_reciprocals && !All(plan.scales, IsDivisor)) {
    const auto wrong = std::find_if_not(plan.scales.begin(), plan.scales.end(), IsDivisor);
    return ScaleError(static_cast<size_t>(wrong - plan.scales.begin()), *wrong,
                      ", scales are finite and not 0");
  }
  std::vector<float> exact;
  for (size_t i = 0; cast && i < plan.scales.size(); ++i) {
    const float value = plan.scales[i];
    const float rounded = RoundTo(plan.precision, value);
    if (!IsDivisor(rounded)) {
      return ScaleError(i, value,
                        absl::StrCat(", which becomes ", rounded, " in ", Name(plan.precision)));
    }
    if (rounded != value && plan.report_error && exact.empty()) exact = plan.scales;
    plan.scales[i] = rounded;
  }
  // `exact` was copied at the first difference: all before it were equal, all behind it untouched.
  plan.dequantize_scales = std::move(exact);
  return have_reciprocals;
}

absl::Status ReadZeroPoints(const TensorView& zero_point, int64_t count, QuantizePlan& plan) {
  switch (Info(plan.output_type).kind) {
    case DataTypeKind::kFloat8:
      return CheckZeroBytes(zero_point, count);
    case DataTypeKind::kFloat4:
      plan.zero_points = ReadFloats(zero_point, count);
      return absl::OkStatus();
    default:
      break;
  }
  plan.zero_points = ReadFloats(zero_point, count);
  if (All(plan.zero_points, [](float value) { return value == 0; })) plan.zero_points.clear();
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
  if (absl::StatusOr<int64_t> count = ElementCount(parameters.x.shape, "x"); !count.ok()) {
    return count.status();
  }
  absl::StatusOr<int64_t> scale_count = ElementCount(parameters.scale.shape, "scale");
  if (!scale_count.ok()) return scale_count.status();
  absl::StatusOr<Blocks> blocks =
      BlocksOfScale(parameters.granularity, parameters.x.shape, parameters.scale.shape);
  if (!blocks.ok()) return blocks.status();
  if (plan.has_zero_point) {
    status = CheckZeroPointShape(parameters.zero_point->shape, parameters.scale.shape);
    if (!status.ok()) return status;
  }

  // Bytes, and only then what they hold.
  status = FillBase(parameters.x, *output_type, *blocks, plan);
  if (!status.ok()) return status;
  scale_count = CheckTensor(parameters.scale, "scale");
  if (!scale_count.ok()) return scale_count.status();
  if (plan.has_zero_point) {
    absl::StatusOr<int64_t> count = CheckTensor(*parameters.zero_point, "zero_point");
    if (!count.ok()) return count.status();
  }
  const absl::StatusOr<bool> have_reciprocals = ReadScales(parameters.scale, *scale_count, plan);
  if (!have_reciprocals.ok()) return have_reciprocals.status();
  if (plan.has_zero_point) {
    status = ReadZeroPoints(*parameters.zero_point, *scale_count, plan);
    if (!status.ok()) return status;
  }
  plan.quotient = ChooseQuotient(plan, *have_reciprocals);
  return plan;
}

}  // namespace quantd
