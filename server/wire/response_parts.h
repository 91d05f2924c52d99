// The tensors of a response in the order on the wire, and the sizes of the bytes around them. Only
// for encode.cc and response_layout.cc.
#ifndef QUANTD_SERVER_WIRE_RESPONSE_PARTS_H_
#define QUANTD_SERVER_WIRE_RESPONSE_PARTS_H_

#include <array>
#include <cstdint>
#include <optional>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "quantd/v1/quantization.pb.h"
#include "server/wire/response_layout.h"
#include "server/wire/writer.h"

namespace quantd::wire {

// The alignment of large tensors: a cache line.
inline constexpr uint64_t kAlignment = 64;

// A stream's envelope: id, and tag and length of the response.
inline constexpr uint64_t kEnvelopeBytes = 1 + kMaxVarintSize + 1 + kMaxVarintSize;

// QuantizationError with its tag and length: three doubles and two varints.
inline constexpr uint64_t kMaxErrorBytes = 2 + 3 * (1 + 8) + 2 * (1 + kMaxVarintSize);

// The numbers of a response's fields; 0: it does not have the field.
struct ResponseFields {
  uint32_t y = 0, y_scale = 0, y_zero_point = 0, y_tensor_scale = 0;
  uint32_t quantization_error = 0;
};
template <typename Response>
constexpr ResponseFields FieldsOf() {
  ResponseFields fields;
  fields.y = Response::kYFieldNumber;
  if constexpr (requires { Response::kYScaleFieldNumber; }) {
    fields.y_scale = Response::kYScaleFieldNumber;
    fields.y_zero_point = Response::kYZeroPointFieldNumber;
    fields.y_tensor_scale = Response::kYTensorScaleFieldNumber;
  }
  if constexpr (requires { Response::kQuantizationErrorFieldNumber; }) {
    fields.quantization_error = Response::kQuantizationErrorFieldNumber;
  }
  return fields;
}
// Indexed by method.
inline constexpr auto kResponseFields = std::to_array(
    {FieldsOf<v1::QuantizeResponse>(), FieldsOf<v1::DequantizeResponse>(),
     FieldsOf<v1::DynamicQuantizeResponse>(), FieldsOf<v1::QuantizeEmbeddingsResponse>()});
static_assert(kResponseFields.size() == kOperations);
inline const ResponseFields& FieldsOf(Method method) {
  return kResponseFields[OperationIndex(method)];
}

// Sizes count one byte for each tag.
constexpr bool HasShortTag(uint32_t number) { return number < 16; }
static_assert(
    [] {
      for (const MethodInfo& info : kMethods) {
        if (!HasShortTag(info.item_response)) return false;
      }
      for (const ResponseFields& fields : kResponseFields) {
        for (const uint32_t number : {fields.y, fields.y_scale, fields.y_zero_point,
                                      fields.y_tensor_scale, fields.quantization_error}) {
          if (!HasShortTag(number)) return false;
        }
      }
      return HasShortTag(v1::Tensor::kRawDataFieldNumber) &&
             HasShortTag(v1::Tensor::kSharedMemoryFieldNumber);
    }(),
    "a field of a response has a tag of two bytes");

struct ResponsePart {
  uint32_t field_number;
  const TensorLayout* tensor;
  absl::Span<uint8_t> ResponseContents::* contents;
  const SharedReference* place = nullptr;  // of elements that are not in the response
};
using ResponseParts = absl::InlinedVector<ResponsePart, 4>;

inline ResponseParts PartsOf(const ResponseLayout& layout) {
  const SharedReference* const place = layout.output ? &*layout.output : nullptr;
  const ResponseFields& fields = FieldsOf(layout.method);
  ResponseParts parts = {{fields.y, &layout.y, &ResponseContents::y, place}};
  const auto add = [&parts](uint32_t number, const std::optional<TensorLayout>& tensor,
                            absl::Span<uint8_t> ResponseContents::* contents) {
    if (tensor) parts.push_back({number, &*tensor, contents});
  };
  add(fields.y_scale, layout.y_scale, &ResponseContents::y_scale);
  add(fields.y_zero_point, layout.y_zero_point, &ResponseContents::y_zero_point);
  add(fields.y_tensor_scale, layout.y_tensor_scale, &ResponseContents::y_tensor_scale);
  return parts;
}

// Bytes of the packed dimensions of `shape`.
inline uint64_t ShapeBytes(const Shape& shape) {
  uint64_t bytes = 0;
  for (int64_t dimension : shape) bytes += VarintSize(static_cast<uint64_t>(dimension));
  return bytes;
}

// The most bytes of a SharedMemoryReference.
inline uint64_t MaxReferenceBytes(const SharedReference& place) {
  return 3 * (1 + kMaxVarintSize) + place.region.size();
}

// The most bytes before a tensor's elements: data_type, and tags and lengths of the field, of the
// shape and of the elements (twice, because values are in a message of their own).
inline uint64_t MaxTensorHeaderBytes(const TensorLayout& tensor) {
  return 4 * (1 + kMaxVarintSize) + 2 + ShapeBytes(tensor.shape);
}

}  // namespace quantd::wire

#endif  // QUANTD_SERVER_WIRE_RESPONSE_PARTS_H_
