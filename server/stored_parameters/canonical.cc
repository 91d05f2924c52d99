#include "server/stored_parameters/canonical.h"

#include <array>
#include <utility>

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
using wire::VarintSize;

// A field of a request that is a tensor.
struct Tensor {
  uint32_t number;
  const TensorView* view;
};
using Tensors = absl::InlinedVector<Tensor, 2>;

BytesView View(absl::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// The high bits of the last byte that no element has.
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
    uint8_t varint[wire::kMaxVarintSize];
    wire::Writer writer(varint);
    writer.Varint(static_cast<uint64_t>(dimension));
    shape.append(reinterpret_cast<char*>(varint), writer.position() - varint);
    elements *= static_cast<uint64_t>(dimension);
  }
  std::string head;
  wire::AppendVarintField(1, static_cast<uint64_t>(view.data_type), head);
  if (!shape.empty()) wire::AppendBytesField(2, shape, head);
  const size_t size = view.bytes.size();
  const size_t whole = head.size() + 1 + VarintSize(size) + size;
  std::array<uint8_t, 4 * wire::kMaxVarintSize> around;
  wire::Writer writer(around.data());
  writer.BytesHeader(tensor.number, whole);
  out.append(reinterpret_cast<char*>(around.data()), writer.position() - around.data());
  out.append(head);
  writer = wire::Writer(around.data());
  writer.BytesHeader(3, size);  // raw_data
  out.append(reinterpret_cast<char*>(around.data()), writer.position() - around.data());
  out.append(view.bytes.begin(), view.bytes.end());
  if (size > 0) ClearPadding(view, elements, out);
}

// `rest`: the request without its tensors, as protobuf writes it; `tensors` by ascending number.
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

Tensors TensorsOf(const v1::QuantizeRequest& message, const QuantizeParameters& parameters) {
  Tensors tensors;
  if (message.has_scale()) tensors.push_back({2, &parameters.scale});
  if (message.has_zero_point()) tensors.push_back({3, &*parameters.zero_point});
  return tensors;
}
Tensors TensorsOf(const v1::QuantizeEmbeddingsRequest& message,
                  const QuantizeEmbeddingsParameters& parameters) {
  Tensors tensors;
  if (message.has_ranges()) tensors.push_back({3, &*parameters.ranges});
  return tensors;
}

void ClearTensors(v1::QuantizeRequest& message) {
  message.clear_scale();
  message.clear_zero_point();
}
void ClearTensors(v1::QuantizeEmbeddingsRequest& message) { message.clear_ranges(); }

absl::Status TooLarge(uint64_t size) {
  return absl::InvalidArgumentError(
      absl::StrCat("the set takes ", size, " bytes, at most ", kMaxSetBytes, " can be stored"));
}

template <typename Message, typename Parameters>
absl::StatusOr<std::string> EncodeRequest(Message message, const Parameters& parameters) {
  const Tensors tensors = TensorsOf(message, parameters);
  if (absl::Status status = Check(message, parameters); !status.ok()) return status;
  uint64_t size = 0;
  for (const Tensor& tensor : tensors) size += tensor.view->bytes.size();
  if (size > kMaxSetBytes) return TooLarge(size);
  ClearTensors(message);
  message.DiscardUnknownFields();
  return Interleave(message.SerializeAsString(), tensors);
}

}  // namespace

absl::StatusOr<std::string> Encode(const v1::ParameterSet& skeleton,
                                   const decltype(wire::Split::raw)& raw) {
  const bool is_quantize = skeleton.has_quantize();
  const wire::Method kind =
      is_quantize ? wire::Method::kQuantize : wire::Method::kQuantizeEmbeddings;
  const absl::StatusOr<wire::Request> request =
      wire::Convert(skeleton, raw[wire::OperationIndex(kind)]);
  if (!request.ok()) return request.status();
  absl::StatusOr<std::string> inner =
      is_quantize
          ? EncodeRequest(skeleton.quantize(), std::get<QuantizeParameters>(request->parameters))
          : EncodeRequest(skeleton.quantize_embeddings(),
                          std::get<QuantizeEmbeddingsParameters>(request->parameters));
  if (!inner.ok() && ErrorField(inner.status()).empty()) return inner;
  if (!inner.ok()) {
    return wire::Within(is_quantize ? "quantize" : "quantize_embeddings", inner.status());
  }
  uint8_t bytes[2 * wire::kMaxVarintSize];
  wire::Writer writer(bytes);
  writer.BytesHeader(is_quantize ? 1 : 2, inner->size());
  inner->insert(0, reinterpret_cast<char*>(bytes), static_cast<size_t>(writer.position() - bytes));
  if (inner->size() > kMaxSetBytes) return TooLarge(inner->size());
  return inner;
}

absl::StatusOr<std::unique_ptr<wire::StoredSet>> Decode(std::string bytes) {
  auto set = std::make_unique<wire::StoredSet>();
  set->bytes = std::move(bytes);
  wire::Split split = wire::SplitSet(View(set->bytes));
  // Shapes and a few numbers: what has more is none of ours, and not worth its memory.
  constexpr size_t kMostSkeleton = 4096;
  absl::Status none = absl::InvalidArgumentError("not the encoding of a set");
  if (!split.ok || split.skeleton.size() > kMostSkeleton ||
      !set->skeleton.ParseFromString(split.skeleton)) {
    return none;
  }
  const absl::StatusOr<std::string> again = Encode(set->skeleton, split.raw);
  if (!again.ok()) return again.status();
  if (*again != set->bytes) return none;
  set->raw = split.raw[wire::OperationIndex(
      set->skeleton.has_quantize() ? wire::Method::kQuantize : wire::Method::kQuantizeEmbeddings)];
  return set;
}

}  // namespace quantd::stored_parameters
