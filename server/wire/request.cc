#include "server/wire/request.h"

namespace quantd::wire {

TensorView& TensorOf(Request& request, TensorField field) {
  const auto find = [field](auto& parameters) -> TensorView* {
    switch (field) {
      case TensorField::kX:
      case TensorField::kEnd:
        break;
      case TensorField::kScale:
        if constexpr (requires { parameters.scale; }) return &parameters.scale;
        break;
      case TensorField::kZeroPoint:
        if constexpr (requires { parameters.zero_point; }) return &*parameters.zero_point;
        break;
      case TensorField::kTensorScale:
        if constexpr (requires { parameters.tensor_scale; }) return &*parameters.tensor_scale;
        break;
      case TensorField::kRanges:
        if constexpr (requires { parameters.ranges; }) return &*parameters.ranges;
        break;
    }
    return &parameters.x;
  };
  return *std::visit(find, request.parameters);
}

}  // namespace quantd::wire
