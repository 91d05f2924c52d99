#include "engine.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "arguments.h"
#include "operand.h"
#include "quantd/dequantize.h"
#include "quantd/dynamic_quantize.h"
#include "quantd/field_error.h"
#include "quantd/quantization_error.h"
#include "quantd/quantize.h"
#include "quantd/quantize_embeddings.h"
#include "quantd/shared_executor.h"
#include "result_tensor.h"
#include "run.h"

namespace quantd::python {
namespace {

nb::object ErrorTuple(bool reported, const QuantizationError& error) {
  if (!reported) return nb::none();
  return nb::make_tuple(error.sqnr_db, error.mean_squared_error, error.max_absolute_error,
                        error.saturated_elements, error.non_finite_elements);
}

}  // namespace

Engine::Engine(nb::object convert, nb::object place, nb::object fail)
    : convert_(std::move(convert)), place_(std::move(place)), fail_(std::move(fail)) {}

Granularity Engine::ReadGranularity(nb::handle axis, nb::handle block_size,
                                    nb::handle block_shape) const {
  Granularity granularity;
  if (!axis.is_none()) granularity.axis = ReadInteger(axis, "axis");
  granularity.block_size = ReadInteger(block_size, "block_size");
  if (block_shape.is_none()) return granularity;
  size_t lengths = 0;
  for (nb::handle length : nb::iter(block_shape)) {
    // More than the server takes are counted, not kept.
    const int64_t number = ReadInteger(length, "block_shape");
    if (++lengths <= kMaxRank) granularity.block_shape.push_back(number);
  }
  if (lengths > kMaxRank) {
    Check(
        FieldError("block_shape", absl::StrCat("block_shape has ", lengths, " dimensions, at most ",
                                               kMaxRank, " are possible")));
  }
  return granularity;
}

void Engine::Check(const absl::Status& status) const { CheckStatus(status, fail_); }

nb::object Engine::Quantize(nb::handle x, nb::handle scale, nb::handle zero_point, int output_type,
                            nb::handle axis, nb::handle block_size, nb::handle block_shape,
                            nb::handle saturate, int precision, bool before_rounding,
                            nb::handle report_error, nb::handle out, nb::handle timeout,
                            int threads) {
  Operand x_operand(x, "x", DataType::kFloat, convert_);
  Operand scale_operand(scale, "scale", DataType::kFloat, convert_);
  std::optional<Operand> zero_operand;
  QuantizeParameters parameters;
  parameters.output_type = static_cast<DataType>(output_type);
  if (!zero_point.is_none()) {
    const DataType fallback = output_type == 0 ? DataType::kUint8 : parameters.output_type;
    zero_operand.emplace(zero_point, "zero_point", fallback, convert_);
  }
  parameters.granularity = ReadGranularity(axis, block_size, block_shape);
  parameters.saturate = IsTrue(saturate);
  parameters.precision = static_cast<DataType>(precision);
  parameters.zero_point_order =
      before_rounding ? ZeroPointOrder::kBeforeRounding : ZeroPointOrder::kAfterRounding;
  parameters.report_error = IsTrue(report_error);
  const Output output(out, place_);

  parameters.x = x_operand.Claimed();
  Ready(scale_operand);
  parameters.scale = scale_operand.Whole();
  if (zero_operand.has_value()) {
    Ready(*zero_operand);
    parameters.zero_point = zero_operand->Whole();
  }
  const absl::StatusOr<QuantizePlan> plan = PlanQuantize(parameters);
  Check(plan.status());
  Check(output.Check(plan->output_type, plan->shape, plan->output_bytes));
  Check(output.CheckOverlap(x_operand, plan->output_bytes));
  Check(output.CheckOverlap(scale_operand, plan->output_bytes));
  if (zero_operand.has_value()) Check(output.CheckOverlap(*zero_operand, plan->output_bytes));

  ResultTensor y(plan->output_type, plan->shape, output);
  x_operand.Gather();
  QuantizationError error;
  const Executor& pool = SharedExecutor(threads);
  Check(Run(plan->input_bytes + plan->output_bytes, timeout, [&](Interrupted interrupted) {
    x_operand.Pack(pool);
    const absl::Status status =
        quantd::Quantize(*plan, x_operand.Whole().bytes, pool, interrupted, y.bytes(), &error);
    if (status.ok()) y.Unpack(pool);
    return status;
  }));
  return nb::make_tuple(y.Take(), ErrorTuple(plan->report_error, error), scale_operand.Copy(),
                        zero_operand.has_value() ? zero_operand->Copy() : nb::none(),
                        static_cast<int>(x_operand.type()));
}

nb::object Engine::Dequantize(nb::handle x, nb::handle scale, nb::handle zero_point,
                              int output_type, nb::handle axis, nb::handle block_size,
                              nb::handle block_shape, nb::handle tensor_scale, nb::handle out,
                              nb::handle timeout, int threads) {
  Operand x_operand(x, "x", DataType::kUint8, convert_);
  Operand scale_operand(scale, "scale", DataType::kFloat, convert_);
  std::optional<Operand> zero_operand;
  std::optional<Operand> tensor_scale_operand;
  if (!zero_point.is_none()) {
    zero_operand.emplace(zero_point, "zero_point", x_operand.type(), convert_);
  }
  if (!tensor_scale.is_none()) {
    tensor_scale_operand.emplace(tensor_scale, "tensor_scale", DataType::kFloat, convert_);
  }
  DequantizeParameters parameters;
  parameters.output_type = static_cast<DataType>(output_type);
  parameters.granularity = ReadGranularity(axis, block_size, block_shape);
  const Output output(out, place_);

  parameters.x = x_operand.Claimed();
  Ready(scale_operand);
  parameters.scale = scale_operand.Whole();
  if (zero_operand.has_value()) {
    Ready(*zero_operand);
    parameters.zero_point = zero_operand->Whole();
  }
  if (tensor_scale_operand.has_value()) {
    Ready(*tensor_scale_operand);
    parameters.tensor_scale = tensor_scale_operand->Whole();
  }
  const absl::StatusOr<DequantizePlan> plan = PlanDequantize(parameters);
  Check(plan.status());
  Check(output.Check(plan->output_type, plan->shape, plan->output_bytes));
  Check(output.CheckOverlap(x_operand, plan->output_bytes));
  Check(output.CheckOverlap(scale_operand, plan->output_bytes));
  for (const std::optional<Operand>* operand : {&zero_operand, &tensor_scale_operand}) {
    if (operand->has_value()) Check(output.CheckOverlap(**operand, plan->output_bytes));
  }

  ResultTensor y(plan->output_type, plan->shape, output);
  x_operand.Gather();
  const Executor& pool = SharedExecutor(threads);
  Check(Run(plan->input_bytes + plan->output_bytes, timeout, [&](Interrupted interrupted) {
    x_operand.Pack(pool);
    return quantd::Dequantize(*plan, x_operand.Whole().bytes, pool, interrupted, y.bytes());
  }));
  return y.Take();
}

nb::object Engine::DynamicQuantize(nb::handle x, int output_type, nb::handle axis,
                                   nb::handle block_size, nb::handle block_shape,
                                   nb::handle saturate, int scale_type, int symmetry,
                                   bool ignore_non_finite, nb::handle report_error, nb::handle out,
                                   nb::handle timeout, int threads) {
  Operand x_operand(x, "x", DataType::kFloat, convert_);
  DynamicQuantizeParameters parameters;
  parameters.output_type = static_cast<DataType>(output_type);
  parameters.granularity = ReadGranularity(axis, block_size, block_shape);
  parameters.saturate = IsTrue(saturate);
  parameters.scale_type = static_cast<DataType>(scale_type);
  parameters.symmetry = static_cast<Symmetry>(symmetry);
  parameters.non_finite = ignore_non_finite ? NonFinite::kIgnore : NonFinite::kReject;
  parameters.report_error = IsTrue(report_error);
  const Output output(out, place_);

  parameters.x = x_operand.Claimed();
  const absl::StatusOr<DynamicQuantizePlan> plan = PlanDynamicQuantize(parameters);
  Check(plan.status());
  Check(output.Check(plan->output_type, plan->shape, plan->output_bytes));
  Check(output.CheckOverlap(x_operand, plan->output_bytes));

  ResultTensor y(plan->output_type, plan->shape, output);
  ResultTensor y_scale(plan->scale_type, plan->scale_shape);
  std::optional<ResultTensor> y_zero_point;
  std::optional<ResultTensor> y_tensor_scale;
  if (plan->has_zero_point) y_zero_point.emplace(plan->output_type, plan->scale_shape);
  if (plan->has_tensor_scale) y_tensor_scale.emplace(DataType::kFloat, Shape());
  DynamicQuantizeOutput places;
  places.y = y.bytes();
  places.scale = y_scale.bytes();
  if (y_zero_point.has_value()) places.zero_point = y_zero_point->bytes();
  if (y_tensor_scale.has_value()) places.tensor_scale = y_tensor_scale->bytes();
  x_operand.Gather();
  QuantizationError error;
  const Executor& pool = SharedExecutor(threads);
  Check(Run(plan->input_bytes + plan->output_bytes, timeout, [&](Interrupted interrupted) {
    x_operand.Pack(pool);
    const absl::Status status =
        quantd::DynamicQuantize(*plan, x_operand.Whole().bytes, pool, interrupted, places, &error);
    if (!status.ok()) return status;
    y.Unpack(pool);
    if (y_zero_point.has_value()) y_zero_point->Unpack(pool);
    return status;
  }));
  return nb::make_tuple(y.Take(), y_scale.Take(),
                        y_zero_point.has_value() ? y_zero_point->Take() : nb::none(),
                        y_tensor_scale.has_value() ? y_tensor_scale->Take() : nb::none(),
                        ErrorTuple(plan->report_error, error), static_cast<int>(x_operand.type()));
}

nb::object Engine::QuantizeEmbeddings(nb::handle x, nb::handle ranges, int recipe, int output_type,
                                      nb::handle dimensions, nb::handle normalize, int bit_order,
                                      int bit_threshold, int signed_bits, bool ignore_non_finite,
                                      nb::handle report_error, nb::handle out, nb::handle timeout,
                                      int threads) {
  Operand x_operand(x, "x", DataType::kFloat, convert_);
  std::optional<Operand> ranges_operand;
  if (!ranges.is_none()) ranges_operand.emplace(ranges, "ranges", DataType::kFloat, convert_);
  QuantizeEmbeddingsParameters parameters;
  parameters.recipe = static_cast<EmbeddingRecipe>(recipe);
  parameters.output_type = static_cast<DataType>(output_type);
  parameters.dimensions = ReadInteger(dimensions, "dimensions");
  parameters.normalize = IsTrue(normalize);
  parameters.bit_order = static_cast<BitOrder>(bit_order);
  parameters.bit_threshold = static_cast<BitThreshold>(bit_threshold);
  parameters.signed_bits = static_cast<SignedBits>(signed_bits);
  parameters.non_finite = ignore_non_finite ? NonFinite::kIgnore : NonFinite::kReject;
  parameters.report_error = IsTrue(report_error);
  const Output output(out, place_);

  parameters.x = x_operand.Claimed();
  if (ranges_operand.has_value()) {
    Ready(*ranges_operand);
    parameters.ranges = ranges_operand->Whole();
  }
  const absl::StatusOr<QuantizeEmbeddingsPlan> plan = PlanQuantizeEmbeddings(parameters);
  Check(plan.status());
  Check(output.Check(plan->output_type, plan->output_shape, plan->output_bytes));
  Check(output.CheckOverlap(x_operand, plan->output_bytes));
  if (ranges_operand.has_value()) Check(output.CheckOverlap(*ranges_operand, plan->output_bytes));

  ResultTensor y(plan->output_type, plan->output_shape, output);
  x_operand.Gather();
  QuantizationError error;
  const Executor& pool = SharedExecutor(threads);
  Check(Run(plan->input_bytes + plan->output_bytes, timeout, [&](Interrupted interrupted) {
    return quantd::QuantizeEmbeddings(*plan, x_operand.Whole().bytes, pool, interrupted, y.bytes(),
                                      &error);
  }));
  return nb::make_tuple(y.Take(), ErrorTuple(plan->report_error, error));
}

}  // namespace quantd::python
