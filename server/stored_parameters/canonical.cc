#include "server/stored_parameters/canonical.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "quantd/field_error.h"
#include "server/stored_parameters/check.h"
#include "server/wire/convert.h"
#include "server/wire/scan.h"
#include "server/wire/writer.h"

namespace quantd::stored_parameters {
namespace {

using wire::BytesView;

// A tensor field of a request.
struct Tensor {
  uint32_t number;
  const TensorView* view;
};
using Tensors = absl::InlinedVector<Tensor, 2>;

BytesView View(absl::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// Clears the high bits of the last byte that belong to no element.
void ClearPadding(const TensorView& tensor, uint64_t elements, std::string& bytes) {
  const uint64_t bits = elements * static_cast<uint64_t>(Info(tensor.data_type).bits) % 8;
  if (bits == 0) return;
  bytes.back() = static_cast<char>(static_cast<uint8_t>(bytes.back()) & ((1U << bits) - 1));
}

void AppendTensor(const Tensor& tensor, std::string& out) {
  const TensorView& view = *tensor.view;
  std::string shape;
  uint64_t elements = 1;
  for (const int64_t dimension : view.shape) {
    const auto length = static_cast<uint64_t>(dimension);
    wire::Append(shape, [&](wire::Writer& writer) { writer.Varint(length); });
    elements *= length;
  }
  std::string head;
  wire::AppendVarintField(v1::Tensor::kDataTypeFieldNumber, static_cast<uint64_t>(view.data_type),
                          head);
  if (!shape.empty()) wire::AppendBytesField(v1::Tensor::kShapeFieldNumber, shape, head);
  const size_t size = view.bytes.size();
  wire::AppendBytesHeader(v1::Tensor::kRawDataFieldNumber, size, head);
  wire::AppendBytesHeader(tensor.number, head.size() + size, out);
  out.append(head);
  out.append(view.bytes.begin(), view.bytes.end());
  if (size > 0) ClearPadding(view, elements, out);
}

// `rest`: the request without its tensors, as serialized by protobuf; `tensors`: sorted by number.
std::string Interleave(absl::string_view rest, const Tensors& tensors) {
  std::string out;
  uint64_t size = rest.size();
  for (const Tensor& tensor : tensors) size += tensor.view->bytes.size() + 256;
  out.reserve(size);
  const Tensor* next = tensors.begin();
  wire::Scanner scanner(View(rest));
  wire::Field field;
  while (scanner.Next(field)) {
    while (next != tensors.end() && next->number < field.number) AppendTensor(*next++, out);
    out.append(reinterpret_cast<const char*>(field.whole.data()), field.whole.size());
  }
  while (next != tensors.end()) AppendTensor(*next++, out);
  return out;
}

// Moves the tensors out of a message, sorted by number. `request`: the converted message.
Tensors TakeTensors(google::protobuf::Message& message, wire::Request& request) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  Tensors tensors;
  for (const auto* const field : fields) {
    if (field->message_type() != v1::Tensor::descriptor()) continue;
    const wire::TensorField name = wire::TensorFieldNamed(field->name());
    tensors.push_back({static_cast<uint32_t>(field->number()), &wire::TensorOf(request, name)});
    reflection.ClearField(&message, field);
  }
  return tensors;
}

absl::Status TooLarge(uint64_t size) {
  return absl::InvalidArgumentError(
      absl::StrCat("the set takes ", size, " bytes, at most ", kMaxSetBytes, " can be stored"));
}

template <typename Parameters, typename Message>
absl::StatusOr<std::string> EncodeRequest(Message message, wire::Request& request) {
  absl::Status status = Check(message, std::get<Parameters>(request.parameters));
  if (!status.ok()) return status;
  const Tensors tensors = TakeTensors(message, request);
  uint64_t size = 0;
  for (const Tensor& tensor : tensors) size += tensor.view->bytes.size();
  if (size > kMaxSetBytes) return TooLarge(size);
  message.DiscardUnknownFields();
  return Interleave(message.SerializeAsString(), tensors);
}

absl::StatusOr<std::string> EncodeKind(const v1::ParameterSet& skeleton, wire::Request& request) {
  switch (skeleton.kind_case()) {
    case v1::ParameterSet::kQuantize:
      return EncodeRequest<QuantizeParameters>(skeleton.quantize(), request);
    case v1::ParameterSet::kQuantizeEmbeddings:
      return EncodeRequest<QuantizeEmbeddingsParameters>(skeleton.quantize_embeddings(), request);
    case v1::ParameterSet::KIND_NOT_SET:
      break;
  }
  return absl::InternalError("a set without a kind was converted");
}

}  // namespace

absl::StatusOr<std::string> Encode(const v1::ParameterSet& skeleton,
                                   const decltype(wire::Split::raw)& raw) {
  const wire::Method kind = wire::KindOf(skeleton);
  absl::StatusOr<wire::Request> request = wire::Convert(skeleton, raw[wire::OperationIndex(kind)]);
  if (!request.ok()) return request.status();
  absl::StatusOr<std::string> inner = EncodeKind(skeleton, *request);
  if (!inner.ok() && ErrorField(inner.status()).empty()) return inner;
  if (!inner.ok()) return wire::Within(wire::Info(kind).operation, inner.status());
  std::string header;
  wire::AppendBytesHeader(static_cast<uint32_t>(skeleton.kind_case()), inner->size(), header);
  inner->insert(0, header);
  if (inner->size() > kMaxSetBytes) return TooLarge(inner->size());
  return inner;
}

absl::StatusOr<std::unique_ptr<wire::StoredSet>> Decode(std::string bytes) {
  auto set = std::make_unique<wire::StoredSet>();
  set->bytes = std::move(bytes);
  wire::Split split = wire::SplitSet(View(set->bytes));
  // Shapes and a few numbers: a larger skeleton was not made by Encode, and is not worth its
  // memory.
  constexpr size_t kMostSkeleton = 4096;
  absl::Status none = absl::InvalidArgumentError("not the encoding of a set");
  if (!split.ok || split.skeleton.size() > kMostSkeleton ||
      !set->skeleton.ParseFromString(split.skeleton)) {
    return none;
  }
  const absl::StatusOr<std::string> again = Encode(set->skeleton, split.raw);
  if (!again.ok()) return again.status();
  if (*again != set->bytes) return none;
  set->raw = split.raw[wire::OperationIndex(wire::KindOf(set->skeleton))];
  return set;
}

}  // namespace quantd::stored_parameters
