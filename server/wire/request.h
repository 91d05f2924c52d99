// A decoded request: the core's parameters, and how to encode the response. Independent of gRPC and
// protobuf.
#ifndef QUANTD_SERVER_WIRE_REQUEST_H_
#define QUANTD_SERVER_WIRE_REQUEST_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "quantd/parameters.h"
#include "server/wire/method.h"

namespace quantd::wire {

// The tensors of requests; kEnd is the number of them.
enum class TensorField : uint8_t { kX, kScale, kZeroPoint, kTensorScale, kRanges, kEnd };
inline constexpr size_t kTensorFields = static_cast<size_t>(TensorField::kEnd);
inline constexpr std::array<absl::string_view, kTensorFields> kTensorNames = {
    "x", "scale", "zero_point", "tensor_scale", "ranges"};
static_assert(!kTensorNames.back().empty(), "a TensorField has no name");
// kEnd: no tensor has that name.
constexpr TensorField TensorFieldNamed(absl::string_view name) {
  size_t index = 0;
  while (index < kTensorFields && kTensorNames[index] != name) ++index;
  return static_cast<TensorField>(index);
}

// How tensors are encoded in the response.
enum class Encoding : uint8_t {
  kRaw,     // raw_data; the fast path
  kValues,  // float_values or int_values, by the type of the tensor
};

// A span of shared memory, as given by the client.
struct SharedReference {
  std::string region;
  uint64_t offset = 0;
  uint64_t byte_size = 0;
};
struct SharedTensor {
  TensorField field;
  SharedReference reference;  // its byte_size follows from type and shape
};

// Movable. The tensors in `parameters` view the message's slices, which must outlive the request,
// or `packed`, which moves with it.
struct Request {
  // The index of the alternative is the number of the Method.
  using Parameters = std::variant<QuantizeParameters, DequantizeParameters,
                                  DynamicQuantizeParameters, QuantizeEmbeddingsParameters>;
  static_assert(std::variant_size_v<Parameters> == kOperations);
  Parameters parameters;
  Encoding output_encoding = Encoding::kRaw;
  // Bytes of tensors that were sent as values, one vector for each tensor.
  std::vector<std::vector<uint8_t>> packed;
  uint64_t packed_bytes() const {
    uint64_t bytes = 0;
    for (const std::vector<uint8_t>& values : packed) bytes += values.capacity();
    return bytes;
  }
  // Tensors in shared memory. They have no bytes until somebody sets them through TensorOf.
  std::vector<SharedTensor> shared;
  // The place of y, of up to byte_size bytes; nullopt: y is in the response.
  std::optional<SharedReference> output;

  Method method() const { return static_cast<Method>(parameters.index()); }
  // x is the first field that is read, so it is the first in `shared`.
  bool x_is_shared() const { return !shared.empty() && shared.front().field == TensorField::kX; }
};

// REQUIRES: the request has that tensor.
inline TensorView& TensorOf(Request& request, TensorField field) {
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

#endif  // QUANTD_SERVER_WIRE_REQUEST_H_
