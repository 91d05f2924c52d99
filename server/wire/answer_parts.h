// The tensors of an answer in the order of the wire, and the sizes of what surrounds them. Only for
// answer*.cc.
#ifndef QUANTD_SERVER_WIRE_ANSWER_PARTS_H_
#define QUANTD_SERVER_WIRE_ANSWER_PARTS_H_

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "server/wire/answer_layout.h"
#include "server/wire/writer.h"

namespace quantd::wire {

// Where large tensors start: a cache line.
inline constexpr uint64_t kAlignment = 64;

// A stream's envelope: id, and tag and length of the response.
inline constexpr uint64_t kEnvelopeBytes = 1 + kMaxVarintSize + 1 + kMaxVarintSize;

// QuantizationError with its own tag and length: three doubles and two varints.
inline constexpr uint64_t kMaxErrorBytes = 2 + 3 * (1 + 8) + 2 * (1 + kMaxVarintSize);

// The field quantization_error.
constexpr uint32_t ErrorFieldNumber(Method method) {
  return method == Method::kDynamicQuantize ? 4 : 2;
}

// The field parameters of every answer that has one, with its tag and length.
inline constexpr uint32_t kParametersField = 16;
inline uint64_t ParametersBytes(const AnswerLayout& layout) {
  const uint64_t size = layout.parameters.size();
  return size == 0 ? 0 : VarintSize(kParametersField << 3) + VarintSize(size) + size;
}

struct AnswerPart {
  uint32_t field_number;
  const TensorLayout* tensor;
  absl::Span<uint8_t> AnswerContents::* contents;
  const SharedReference* place = nullptr;  // of elements that are not in the answer
};
using AnswerParts = absl::InlinedVector<AnswerPart, 4>;

inline AnswerParts PartsOf(const AnswerLayout& layout) {
  const SharedReference* const place = layout.output ? &*layout.output : nullptr;
  AnswerParts parts = {{1, &layout.y, &AnswerContents::y, place}};
  if (layout.y_scale) parts.push_back({2, &*layout.y_scale, &AnswerContents::y_scale});
  if (layout.y_zero_point) {
    parts.push_back({3, &*layout.y_zero_point, &AnswerContents::y_zero_point});
  }
  if (layout.y_tensor_scale) {
    parts.push_back({5, &*layout.y_tensor_scale, &AnswerContents::y_tensor_scale});
  }
  return parts;
}

// Bytes of a tensor's values of `shape`, packed.
inline uint64_t ShapeBytes(const Shape& shape) {
  uint64_t bytes = 0;
  for (int64_t dimension : shape) bytes += VarintSize(static_cast<uint64_t>(dimension));
  return bytes;
}

// What a SharedMemoryReference takes, at most.
inline uint64_t MaxReferenceBytes(const SharedReference& place) {
  return 3 * (1 + kMaxVarintSize) + place.region.size();
}

// What stands before a tensor's elements, at most: tags and lengths of the field, of shape and of
// the elements (twice, for values lie in a message of their own), and data_type.
inline uint64_t MaxTensorHeaderBytes(const TensorLayout& tensor) {
  return 4 * (1 + kMaxVarintSize) + 2 + ShapeBytes(tensor.shape);
}

}  // namespace quantd::wire

#endif  // QUANTD_SERVER_WIRE_ANSWER_PARTS_H_
