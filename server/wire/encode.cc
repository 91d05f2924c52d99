// A response in its one allocation:
//
//   | room | room for a stream's envelope | tensor | tensor ... | room for quantization_error |
//                                         ^ begin              ^ end
//   tensor = tag, length, data_type, shape, tag and length of raw_data, the elements
//
// The plan knows the size of everything but the envelope and the error, so the layout is
// fixed and the small fields are written before the kernels run. The other two are
// written afterwards, to the left of begin and to the right of end, and the message is
// what lies between. If y is in shared memory, its
// place replaces the elements. If y is made elsewhere while it is sent, no gap is left
// for it.
#include "server/wire/encode.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "quantd/field_error.h"
#include "quantd/v1/quantization.pb.h"
#include "quantd/values.h"
#include "server/wire/status_details.h"
#include "server/wire/writer.h"

namespace quantd::wire {
namespace {

// The alignment of large tensors: a cache line.
constexpr uint64_t kAlignment = 64;

// A stream's envelope: id, and tag and length of the response.
constexpr uint64_t kEnvelopeBytes = 1 + kMaxVarintSize + 1 + kMaxVarintSize;

// QuantizationError with its tag and length: three doubles and two varints.
constexpr uint64_t kMaxErrorBytes = 2 + 3 * (1 + 8) + 2 * (1 + kMaxVarintSize);

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
constexpr auto kResponseFields = std::to_array(
    {FieldsOf<v1::QuantizeResponse>(), FieldsOf<v1::DequantizeResponse>(),
     FieldsOf<v1::DynamicQuantizeResponse>(), FieldsOf<v1::QuantizeEmbeddingsResponse>()});
static_assert(kResponseFields.size() == kOperations);
const ResponseFields& FieldsOf(Method method) { return kResponseFields[OperationIndex(method)]; }

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

ResponseParts PartsOf(const ResponseLayout& layout) {
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
uint64_t ShapeBytes(const Shape& shape) {
  uint64_t bytes = 0;
  for (int64_t dimension : shape) bytes += VarintSize(static_cast<uint64_t>(dimension));
  return bytes;
}

// The most bytes of a SharedMemoryReference.
uint64_t MaxReferenceBytes(const SharedReference& place) {
  return 3 * (1 + kMaxVarintSize) + place.region.size();
}

// The most bytes before a tensor's elements: data_type, and tags and lengths of the field, of the
// shape and of the elements (twice, because values are in a message of their own).
uint64_t MaxTensorHeaderBytes(const TensorLayout& tensor) {
  return 4 * (1 + kMaxVarintSize) + 2 + ShapeBytes(tensor.shape);
}

// For smaller tensors kernels gain nothing from an aligned start.
constexpr uint64_t kAlignFromBytes = 4096;

// Bytes from `place` to the next aligned start of elements.
uint64_t ToAligned(const uint8_t* place) {
  return -reinterpret_cast<uintptr_t>(place) % kAlignment;
}

// data_type, and the shape unless it is empty.
uint64_t TypeAndShapeBytes(const TensorLayout& tensor) {
  const uint64_t shape = ShapeBytes(tensor.shape);
  return 2 + (shape == 0 ? 0 : 1 + VarintSize(shape) + shape);
}

// The SharedMemoryReference message, without members that are zero. It always has a region.
uint64_t ReferenceBytes(const SharedReference& place) {
  const auto number = [](uint64_t value) { return value == 0 ? 0 : 1 + VarintSize(value); };
  return 1 + VarintSize(place.region.size()) + place.region.size() + number(place.offset) +
         number(place.byte_size);
}

// The Tensor message.
uint64_t TensorBytes(const ResponsePart& part) {
  const uint64_t bytes = part.place == nullptr ? part.tensor->bytes : ReferenceBytes(*part.place);
  return TypeAndShapeBytes(*part.tensor) + 1 + VarintSize(bytes) + bytes;
}

// The field that contains it.
uint64_t PartBytes(const ResponsePart& part) {
  const uint64_t bytes = TensorBytes(part);
  return 1 + VarintSize(bytes) + bytes;
}

void WriteReference(const SharedReference& place, Writer& writer) {
  writer.BytesHeader(v1::Tensor::kSharedMemoryFieldNumber, ReferenceBytes(place));
  writer.BytesHeader(v1::SharedMemoryReference::kRegionFieldNumber, place.region.size());
  std::memcpy(writer.position(), place.region.data(), place.region.size());
  writer.Skip(place.region.size());
  if (place.offset != 0) {
    writer.VarintField(v1::SharedMemoryReference::kOffsetFieldNumber, place.offset);
  }
  if (place.byte_size != 0) {
    writer.VarintField(v1::SharedMemoryReference::kByteSizeFieldNumber, place.byte_size);
  }
}

// Writes everything except the elements, and returns their place.
absl::Span<uint8_t> WritePart(const ResponsePart& part, bool is_here, Writer& writer) {
  const TensorLayout& tensor = *part.tensor;
  writer.BytesHeader(part.field_number, TensorBytes(part));
  writer.VarintField(v1::Tensor::kDataTypeFieldNumber, static_cast<uint64_t>(tensor.data_type));
  if (!tensor.shape.empty()) {
    writer.BytesHeader(v1::Tensor::kShapeFieldNumber, ShapeBytes(tensor.shape));
    for (int64_t dimension : tensor.shape) writer.Varint(static_cast<uint64_t>(dimension));
  }
  if (part.place != nullptr) {
    WriteReference(*part.place, writer);
    return {};
  }
  writer.BytesHeader(v1::Tensor::kRawDataFieldNumber, tensor.bytes);
  const absl::Span<uint8_t> elements(writer.position(), is_here ? tensor.bytes : 0);
  writer.Skip(elements.size());
  return elements;
}

// Elements that are unpacked at a time. Their bytes are whole for every type.
constexpr int64_t kUnpackedAtOnce = 64 << 10;

// For Encoding::kValues.
void FillTensor(const TensorLayout& layout, absl::Span<const uint8_t> bytes,
                Response::Between between, v1::Tensor& tensor) {
  tensor.set_data_type(static_cast<v1::DataType>(layout.data_type));
  tensor.mutable_shape()->Add(layout.shape.begin(), layout.shape.end());
  const auto fill = [&](auto& values, const auto& unpack) {
    values.Reserve(static_cast<int>(layout.elements));
    for (int64_t at = 0; at < layout.elements; at += kUnpackedAtOnce) {
      between();
      const auto some = unpack(layout.data_type, std::min(kUnpackedAtOnce, layout.elements - at),
                               bytes.subspan(ByteSize(layout.data_type, at)));
      values.Add(some.begin(), some.end());
    }
  };
  if (Info(layout.data_type).kind == DataTypeKind::kInteger) {
    fill(*tensor.mutable_int_values()->mutable_values(), UnpackIntegers);
  } else {
    fill(*tensor.mutable_float_values()->mutable_values(), UnpackFloats);
  }
}

void FillError(const QuantizationError& error, v1::QuantizationError& message) {
  message.set_sqnr_db(error.sqnr_db);
  message.set_mean_squared_error(error.mean_squared_error);
  message.set_max_absolute_error(error.max_absolute_error);
  message.set_saturated_elements(error.saturated_elements);
  message.set_non_finite_elements(error.non_finite_elements);
}

// The field quantization_error.
void WriteError(Method method, const QuantizationError& error, Writer& writer) {
  v1::QuantizationError message;
  FillError(error, message);
  const size_t size = message.ByteSizeLong();
  writer.BytesHeader(FieldsOf(method).quantization_error, size);
  message.SerializeWithCachedSizesToArray(writer.position());
  writer.Skip(size);
}

constexpr uint64_t kTooMuch = std::numeric_limits<uint64_t>::max();

uint64_t Add(uint64_t a, uint64_t b) { return a > kTooMuch - b ? kTooMuch : a + b; }
uint64_t Multiply(uint64_t a, uint64_t b) { return b != 0 && a > kTooMuch / b ? kTooMuch : a * b; }

// The most bytes of one value in a message.
uint64_t ValueBytes(DataType type) {
  const DataTypeInfo& info = Info(type);
  if (info.kind != DataTypeKind::kInteger) return sizeof(float);
  return info.minimum < 0 ? kMaxVarintSize : VarintSize(info.maximum);
}

}  // namespace

uint64_t MaxEncodedBytes(const ResponseLayout& layout) {
  uint64_t bytes = kEnvelopeBytes + (layout.report_error ? kMaxErrorBytes : 0);
  for (const ResponsePart& part : PartsOf(layout)) {
    uint64_t payload = part.tensor->bytes;
    if (part.place != nullptr) {
      payload = MaxReferenceBytes(*part.place);
    } else if (layout.encoding == Encoding::kValues) {
      payload = Multiply(static_cast<uint64_t>(part.tensor->elements),
                         ValueBytes(part.tensor->data_type));
    }
    bytes = Add(bytes, Add(payload, MaxTensorHeaderBytes(*part.tensor)));
  }
  return bytes;
}

uint64_t ResponseMemoryBytes(const ResponseLayout& layout) {
  uint64_t bytes = memory::Pool::Footprint(Add(MaxEncodedBytes(layout), kAlignment));
  if (layout.encoding == Encoding::kRaw) return bytes;
  // The packed bytes (once more while the core unpacks them), and each value twice: as the core
  // unpacks it, and in the generated message.
  for (const ResponsePart& part : PartsOf(layout)) {
    bytes = Add(bytes, Multiply(part.tensor->bytes, 2));
    bytes = Add(bytes, Multiply(static_cast<uint64_t>(part.tensor->elements), 2 * sizeof(int64_t)));
  }
  return bytes;
}

memory::Piece MakePiece(size_t size, memory::Pool& pool) {
  memory::Buffer buffer = pool.Allocate(kRoomBefore + size);
  if (buffer.data() == nullptr) return {};
  uint8_t* const begin = buffer.data() + kRoomBefore;
  return {std::move(buffer), begin, size};
}

memory::Piece Serialize(const google::protobuf::MessageLite& message, memory::Pool& pool) {
  memory::Piece piece = MakePiece(message.ByteSizeLong(), pool);
  if (piece.begin != nullptr) message.SerializeWithCachedSizesToArray(piece.begin);
  return piece;
}

struct Response::State {
  State(const ResponseLayout& wanted, memory::Pool& from, bool without_y)
      : layout(wanted), pool(from) {
    layout.encoding == Encoding::kRaw ? LayOutRaw(without_y) : LayOutValues();
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void LayOutRaw(bool without_y);
  void LayOutValues();
  memory::Piece FinishRaw(const uint64_t* id);
  memory::Piece FinishValues(const uint64_t* id, Between between);
  template <typename Message>
  void Fill(Message& message, Between between);

  ResponseLayout layout;
  memory::Pool& pool;
  ResponseContents contents;
  memory::Buffer buffer;
  uint8_t* begin = nullptr;
  uint8_t* end = nullptr;
};

void Response::State::LayOutRaw(bool without_y) {
  const ResponseParts parts = PartsOf(layout);
  uint64_t body = 0;
  for (const ResponsePart& part : parts) body += PartBytes(part);
  if (without_y) body -= layout.y.bytes;
  const uint64_t error = layout.report_error ? kMaxErrorBytes : 0;
  const bool align = layout.y.bytes >= kAlignFromBytes && !without_y && !layout.output.has_value();
  buffer =
      pool.Allocate(kRoomBefore + kEnvelopeBytes + (align ? kAlignment - 1 : 0) + body + error);
  if (buffer.data() == nullptr) return;
  begin = buffer.data() + kRoomBefore + kEnvelopeBytes;
  if (align) {
    const uint64_t header = PartBytes(parts.front()) - layout.y.bytes;
    begin += ToAligned(begin + header);
  }
  Writer writer(begin);
  for (const ResponsePart& part : parts) {
    const bool is_here = !without_y || part.tensor != &layout.y;
    contents.*part.contents = WritePart(part, is_here, writer);
  }
  end = writer.position();
}

memory::Piece Response::State::FinishRaw(const uint64_t* id) {
  if (layout.report_error) {
    Writer writer(end);
    WriteError(layout.method, contents.error, writer);
    end = writer.position();
  }
  if (id != nullptr) {
    uint8_t envelope[kEnvelopeBytes];
    Writer writer(envelope);
    if (*id != 0) writer.VarintField(v1::StreamResponse::kIdFieldNumber, *id);
    writer.BytesHeader(Info(layout.method).item_response, end - begin);
    const size_t size = writer.position() - envelope;
    begin -= size;
    std::memcpy(begin, envelope, size);
  }
  return {std::move(buffer), begin, static_cast<size_t>(end - begin)};
}

void Response::State::LayOutValues() {
  const ResponseParts parts = PartsOf(layout);
  uint64_t bytes = 0;
  for (const ResponsePart& part : parts) bytes += part.tensor->bytes;
  buffer = pool.Allocate(kAlignment - 1 + bytes);
  uint8_t* next = buffer.data();
  if (next == nullptr) return;
  next += ToAligned(next);
  for (const ResponsePart& part : parts) {
    contents.*part.contents = {next, part.tensor->bytes};
    next += part.tensor->bytes;
  }
}

template <typename Message>
void Response::State::Fill(Message& message, Between between) {
  FillTensor(layout.y, contents.y, between, *message.mutable_y());
  if constexpr (requires { message.y_scale(); }) {
    if (layout.y_scale) {
      FillTensor(*layout.y_scale, contents.y_scale, between, *message.mutable_y_scale());
    }
    if (layout.y_zero_point) {
      FillTensor(*layout.y_zero_point, contents.y_zero_point, between,
                 *message.mutable_y_zero_point());
    }
    if (layout.y_tensor_scale) {
      FillTensor(*layout.y_tensor_scale, contents.y_tensor_scale, between,
                 *message.mutable_y_tensor_scale());
    }
  }
  if constexpr (requires { message.quantization_error(); }) {
    if (layout.report_error) FillError(contents.error, *message.mutable_quantization_error());
  }
}

memory::Piece Response::State::FinishValues(const uint64_t* id, Between between) {
  v1::StreamResponse item;
  const auto finish = [&](auto& message) {
    Fill(message, between);
    between();
    if (id == nullptr) return Serialize(message, pool);
    item.set_id(*id);
    return Serialize(item, pool);
  };
  switch (layout.method) {
    case Method::kQuantize:
      return finish(*item.mutable_quantize());
    case Method::kDequantize:
      return finish(*item.mutable_dequantize());
    case Method::kDynamicQuantize:
      return finish(*item.mutable_dynamic_quantize());
    case Method::kQuantizeEmbeddings:
      return finish(*item.mutable_quantize_embeddings());
    case Method::kStream:
    case Method::kGetServerInfo:
      break;
  }
  return {};  // no operation has such a response
}

Response::Response(const ResponseLayout& layout, memory::Pool& pool, bool without_y)
    : state_(std::make_unique<State>(layout, pool, without_y)) {}
Response::Response(Response&&) noexcept = default;
Response& Response::operator=(Response&&) noexcept = default;
Response::~Response() = default;

const ResponseLayout& Response::layout() const { return state_->layout; }

bool Response::has_memory() const { return state_->buffer.data() != nullptr; }

ResponseContents& Response::contents() { return state_->contents; }

memory::Piece Response::Finish(Between between) && {
  return state_->layout.encoding == Encoding::kRaw ? state_->FinishRaw(nullptr)
                                                   : state_->FinishValues(nullptr, between);
}

memory::Piece Response::FinishItem(uint64_t id, Between between) && {
  return state_->layout.encoding == Encoding::kRaw ? state_->FinishRaw(&id)
                                                   : state_->FinishValues(&id, between);
}

memory::Piece EncodeItemError(uint64_t id, const absl::Status& status, memory::Pool& pool) {
  v1::StreamResponse item;
  item.set_id(id);
  v1::ItemError& error = *item.mutable_error();
  const ErrorText text = TextOf(status);
  error.set_code(static_cast<int32_t>(status.code()));
  error.set_message(text.message);
  if (!text.field.empty()) {
    v1::FieldViolation& violation = *error.add_field_violations();
    violation.set_field(text.field);
    violation.set_description(text.message);
  }
  return Serialize(item, pool);
}

}  // namespace quantd::wire
