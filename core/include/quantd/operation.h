// A common interface to all operations, for callers that forward any of them: the server, and the
// libraries for other languages.
//
//   absl::StatusOr<OperationPlan> plan = MakePlan(parameters);  // of any operation
//   ... room for the tensors that LayoutOf(*plan) describes ...
//   absl::Status status = Execute(*plan, parameters.x.bytes, executor, interrupted, room, nullptr);
#ifndef QUANTD_OPERATION_H_
#define QUANTD_OPERATION_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "quantd/dequantize.h"
#include "quantd/dynamic_quantize.h"
#include "quantd/executor.h"
#include "quantd/plan.h"
#include "quantd/quantization_error.h"
#include "quantd/quantize.h"
#include "quantd/quantize_embeddings.h"

namespace quantd {

using OperationPlan =
    std::variant<QuantizePlan, DequantizePlan, DynamicQuantizePlan, QuantizeEmbeddingsPlan>;

// The plan of the operation with these parameters. Returns the errors of its own Plan function.
inline absl::StatusOr<OperationPlan> MakePlan(const QuantizeParameters& parameters) {
  return PlanQuantize(parameters);
}
inline absl::StatusOr<OperationPlan> MakePlan(const DequantizeParameters& parameters) {
  return PlanDequantize(parameters);
}
inline absl::StatusOr<OperationPlan> MakePlan(const DynamicQuantizeParameters& parameters) {
  return PlanDynamicQuantize(parameters);
}
inline absl::StatusOr<OperationPlan> MakePlan(const QuantizeEmbeddingsParameters& parameters) {
  return PlanQuantizeEmbeddings(parameters);
}

inline const PlanBase& BaseOf(const OperationPlan& plan) {
  return std::visit([](const auto& each) -> const PlanBase& { return each; }, plan);
}

struct TensorLayout {
  DataType data_type = DataType::kUnspecified;
  Shape shape;
  int64_t elements = 0;  // in the shape
  uint64_t bytes = 0;    // packed
};

// The outputs of an operation.
struct ResultLayout {
  TensorLayout y;
  // DynamicQuantize only.
  std::optional<TensorLayout> y_scale;
  std::optional<TensorLayout> y_zero_point;
  std::optional<TensorLayout> y_tensor_scale;
  bool report_error = false;
};

inline ResultLayout LayoutOf(const OperationPlan& plan) {
  const PlanBase& base = BaseOf(plan);
  ResultLayout layout;
  layout.y = {base.output_type, base.shape, base.elements, base.output_bytes};
  if (const auto* const quantize = std::get_if<QuantizePlan>(&plan)) {
    layout.report_error = quantize->report_error;
  } else if (const auto* const dynamic = std::get_if<DynamicQuantizePlan>(&plan)) {
    const int64_t scales = base.layout.scale_count;
    layout.report_error = dynamic->report_error;
    layout.y_scale = {dynamic->scale_type, dynamic->scale_shape, scales, dynamic->scale_bytes};
    if (dynamic->has_zero_point) {
      layout.y_zero_point = {base.output_type, dynamic->scale_shape, scales,
                             dynamic->zero_point_bytes};
    }
    if (dynamic->has_tensor_scale) layout.y_tensor_scale = {DataType::kFloat, Shape(), 1, 4};
  } else if (const auto* const embeddings = std::get_if<QuantizeEmbeddingsPlan>(&plan)) {
    layout.report_error = embeddings->report_error;
    layout.y.shape = embeddings->output_shape;
    layout.y.elements = embeddings->output_elements;
  }
  return layout;
}

// Runs the operation. Returns the errors of its own function. `output` has the size of each tensor
// that LayoutOf describes, and overlaps no input. `error` may be null; it is set if the layout has
// report_error.
inline absl::Status Execute(const OperationPlan& plan, absl::Span<const uint8_t> x,
                            const Executor& executor, Interrupted interrupted,
                            const DynamicQuantizeOutput& output, QuantizationError* error) {
  if (const auto* const quantize = std::get_if<QuantizePlan>(&plan)) {
    return Quantize(*quantize, x, executor, interrupted, output.y, error);
  }
  if (const auto* const dequantize = std::get_if<DequantizePlan>(&plan)) {
    return Dequantize(*dequantize, x, executor, interrupted, output.y);
  }
  if (const auto* const dynamic = std::get_if<DynamicQuantizePlan>(&plan)) {
    return DynamicQuantize(*dynamic, x, executor, interrupted, output, error);
  }
  return QuantizeEmbeddings(std::get<QuantizeEmbeddingsPlan>(plan), x, executor, interrupted,
                            output.y, error);
}

}  // namespace quantd

#endif  // QUANTD_OPERATION_H_
