#include "engine.h"

#include <array>
#include <cstddef>
#include <optional>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "arguments.h"
#include "operand.h"
#include "quantd/field_error.h"
#include "quantd/operation.h"
#include "quantd/quantization_error.h"
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

// The results of an operation; None for tensors that it does not make.
struct Answer {
  nb::object y, scale, zero_point, tensor_scale, error;
};

}  // namespace

// One call: its tensors, the plan, and the computation of the answer.
class Engine::Call {
 public:
  Call(const Engine& engine, nb::handle x, DataType fallback)
      : engine_(engine), x_(x, "x", fallback, engine.convert_) {}

  DataType x_type() const { return x_.type(); }
  // Reads an argument other than x.
  TensorView Read(nb::handle value, const char* name, DataType fallback) {
    Operand& operand = beside_.emplace_back(value, name, fallback, engine_.convert_);
    Ready(operand);
    return operand.Whole();
  }
  std::optional<TensorView> ReadIfAny(nb::handle value, const char* name, DataType fallback) {
    if (value.is_none()) return std::nullopt;
    return Read(value, name, fallback);
  }
  // A copy of the argument that was read as number `index`; None if there were fewer.
  nb::object Copy(size_t index) const {
    return index < beside_.size() ? beside_[index].Copy() : nb::none();
  }
  // `parameters` are complete except for x.
  template <typename Parameters>
  Answer Run(Parameters& parameters, nb::handle out, nb::handle timeout, int threads);

 private:
  const Engine& engine_;
  Operand x_;
  absl::InlinedVector<Operand, 3> beside_;
};

template <typename Parameters>
Answer Engine::Call::Run(Parameters& parameters, nb::handle out, nb::handle timeout, int threads) {
  const Output output(out, engine_.place_);
  parameters.x = x_.Claimed();
  const absl::StatusOr<OperationPlan> plan = MakePlan(parameters);
  engine_.Check(plan.status());
  const ResultLayout layout = LayoutOf(*plan);
  engine_.Check(output.Check(layout.y));
  engine_.Check(output.CheckOverlap(x_, layout.y.bytes));
  for (const Operand& operand : beside_) {
    engine_.Check(output.CheckOverlap(operand, layout.y.bytes));
  }

  ResultTensor y(layout.y.data_type, layout.y.shape, &output);
  std::array<std::optional<ResultTensor>, 3> others;
  DynamicQuantizeOutput places;
  places.y = y.bytes();
  const auto make = [](const std::optional<TensorLayout>& of, std::optional<ResultTensor>& result,
                       absl::Span<uint8_t>& place) {
    if (!of.has_value()) return;
    result.emplace(of->data_type, of->shape);
    place = result->bytes();
  };
  make(layout.y_scale, others[0], places.scale);
  make(layout.y_zero_point, others[1], places.zero_point);
  make(layout.y_tensor_scale, others[2], places.tensor_scale);
  x_.Gather();
  QuantizationError error;
  const Executor& pool = SharedExecutor(threads);
  const uint64_t bytes = parameters.x.bytes.size() + layout.y.bytes;
  engine_.Check(python::Run(bytes, timeout, [&](Interrupted interrupted) {
    x_.Pack(pool);
    const absl::Status status = Execute(*plan, x_.Whole().bytes, pool, interrupted, places, &error);
    if (!status.ok()) return status;
    y.Unpack(pool);
    for (const std::optional<ResultTensor>& other : others) {
      if (other.has_value()) other->Unpack(pool);
    }
    return status;
  }));
  const auto take = [](std::optional<ResultTensor>& result) {
    return result.has_value() ? result->Take() : nb::none();
  };
  return {y.Take(), take(others[0]), take(others[1]), take(others[2]),
          ErrorTuple(layout.report_error, error)};
}

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
    // More entries than the server accepts are counted, but not stored.
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
  Call call(*this, x, DataType::kFloat);
  QuantizeParameters parameters;
  parameters.output_type = static_cast<DataType>(output_type);
  parameters.scale = call.Read(scale, "scale", DataType::kFloat);
  parameters.zero_point = call.ReadIfAny(
      zero_point, "zero_point", output_type == 0 ? DataType::kUint8 : parameters.output_type);
  parameters.granularity = ReadGranularity(axis, block_size, block_shape);
  parameters.saturate = IsTrue(saturate);
  parameters.precision = static_cast<DataType>(precision);
  parameters.zero_point_order =
      before_rounding ? ZeroPointOrder::kBeforeRounding : ZeroPointOrder::kAfterRounding;
  parameters.report_error = IsTrue(report_error);
  const Answer answer = call.Run(parameters, out, timeout, threads);
  return nb::make_tuple(answer.y, answer.error, call.Copy(0), call.Copy(1),
                        static_cast<int>(call.x_type()));
}

nb::object Engine::Dequantize(nb::handle x, nb::handle scale, nb::handle zero_point,
                              int output_type, nb::handle axis, nb::handle block_size,
                              nb::handle block_shape, nb::handle tensor_scale, nb::handle out,
                              nb::handle timeout, int threads) {
  Call call(*this, x, DataType::kUint8);
  DequantizeParameters parameters;
  parameters.output_type = static_cast<DataType>(output_type);
  parameters.scale = call.Read(scale, "scale", DataType::kFloat);
  parameters.zero_point = call.ReadIfAny(zero_point, "zero_point", call.x_type());
  parameters.tensor_scale = call.ReadIfAny(tensor_scale, "tensor_scale", DataType::kFloat);
  parameters.granularity = ReadGranularity(axis, block_size, block_shape);
  return call.Run(parameters, out, timeout, threads).y;
}

nb::object Engine::DynamicQuantize(nb::handle x, int output_type, nb::handle axis,
                                   nb::handle block_size, nb::handle block_shape,
                                   nb::handle saturate, int scale_type, int symmetry,
                                   bool ignore_non_finite, nb::handle report_error, nb::handle out,
                                   nb::handle timeout, int threads) {
  Call call(*this, x, DataType::kFloat);
  DynamicQuantizeParameters parameters;
  parameters.output_type = static_cast<DataType>(output_type);
  parameters.granularity = ReadGranularity(axis, block_size, block_shape);
  parameters.saturate = IsTrue(saturate);
  parameters.scale_type = static_cast<DataType>(scale_type);
  parameters.symmetry = static_cast<Symmetry>(symmetry);
  parameters.non_finite = ignore_non_finite ? NonFinite::kIgnore : NonFinite::kReject;
  parameters.report_error = IsTrue(report_error);
  const Answer answer = call.Run(parameters, out, timeout, threads);
  return nb::make_tuple(answer.y, answer.scale, answer.zero_point, answer.tensor_scale,
                        answer.error, static_cast<int>(call.x_type()));
}

nb::object Engine::QuantizeEmbeddings(nb::handle x, nb::handle ranges, int recipe, int output_type,
                                      nb::handle dimensions, nb::handle normalize, int bit_order,
                                      int bit_threshold, int signed_bits, bool ignore_non_finite,
                                      nb::handle report_error, nb::handle out, nb::handle timeout,
                                      int threads) {
  Call call(*this, x, DataType::kFloat);
  QuantizeEmbeddingsParameters parameters;
  parameters.ranges = call.ReadIfAny(ranges, "ranges", DataType::kFloat);
  parameters.recipe = static_cast<EmbeddingRecipe>(recipe);
  parameters.output_type = static_cast<DataType>(output_type);
  parameters.dimensions = ReadInteger(dimensions, "dimensions");
  parameters.normalize = IsTrue(normalize);
  parameters.bit_order = static_cast<BitOrder>(bit_order);
  parameters.bit_threshold = static_cast<BitThreshold>(bit_threshold);
  parameters.signed_bits = static_cast<SignedBits>(signed_bits);
  parameters.non_finite = ignore_non_finite ? NonFinite::kIgnore : NonFinite::kReject;
  parameters.report_error = IsTrue(report_error);
  const Answer answer = call.Run(parameters, out, timeout, threads);
  return nb::make_tuple(answer.y, answer.error);
}

}  // namespace quantd::python
