// See request.h.
#include "server/wire/request.h"

#include <type_traits>

namespace quantd::wire {

TensorView& TensorOf(Request& request, TensorField field) {
  const auto find = [field](auto& parameters) -> TensorView* {
    using Parameters = std::remove_reference_t<decltype(parameters)>;
    if constexpr (std::is_same_v<Parameters, QuantizeEmbeddingsParameters>) {
      if (field == TensorField::kRanges) return &*parameters.ranges;
    } else if constexpr (!std::is_same_v<Parameters, DynamicQuantizeParameters>) {
      if (field == TensorField::kScale) return &parameters.scale;
      if (field == TensorField::kZeroPoint) return &*parameters.zero_point;
    }
    if constexpr (std::is_same_v<Parameters, DequantizeParameters>) {
      if (field == TensorField::kTensorScale) return &*parameters.tensor_scale;
    }
    return &parameters.x;
  };
  return *std::visit(find, request.parameters);
}

}  // namespace quantd::wire
