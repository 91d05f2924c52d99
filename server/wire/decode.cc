#include "server/wire/decode.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "quantd/v1/quantization.pb.h"
#include "server/wire/convert.h"
#include "server/wire/split.h"

namespace quantd::wire {
namespace {

absl::Status Malformed(absl::string_view message_name) {
  return absl::InvalidArgumentError(
      absl::StrCat("the message is truncated or not a quantd.v1.", message_name));
}

template <typename Message>
absl::StatusOr<Request> Decode(Method method, BytesView bytes) {
  const Split split = SplitRequest(method, bytes);
  Message message;
  if (!split.ok || !message.ParseFromString(split.skeleton)) {
    return Malformed(message.GetDescriptor()->name());
  }
  return Convert(message, split.raw[OperationIndex(method)]);
}

absl::StatusOr<Request> ConvertItem(const v1::StreamRequest& item, const Split& split) {
  const auto raw = [&split](Method method) { return split.raw[OperationIndex(method)]; };
  switch (item.request_case()) {
    case v1::StreamRequest::kQuantize:
      return Convert(item.quantize(), raw(Method::kQuantize));
    case v1::StreamRequest::kDequantize:
      return Convert(item.dequantize(), raw(Method::kDequantize));
    case v1::StreamRequest::kDynamicQuantize:
      return Convert(item.dynamic_quantize(), raw(Method::kDynamicQuantize));
    case v1::StreamRequest::kQuantizeEmbeddings:
      return Convert(item.quantize_embeddings(), raw(Method::kQuantizeEmbeddings));
    case v1::StreamRequest::REQUEST_NOT_SET:
      break;
  }
  return FieldError(
      "request", "none of quantize, dequantize, dynamic_quantize and quantize_embeddings is set");
}

constexpr uint32_t kIdField = 1;

}  // namespace

absl::StatusOr<Request> DecodeRequest(Method method, BytesView message) {
  switch (method) {
    case Method::kQuantize:
      return Decode<v1::QuantizeRequest>(method, message);
    case Method::kDequantize:
      return Decode<v1::DequantizeRequest>(method, message);
    case Method::kQuantizeEmbeddings:
      return Decode<v1::QuantizeEmbeddingsRequest>(method, message);
    default:
      return Decode<v1::DynamicQuantizeRequest>(method, message);
  }
}

StreamItem DecodeStreamItem(BytesView message) {
  const Split split = SplitItem(message);
  v1::StreamRequest parsed;
  StreamItem item;
  if (split.ok && parsed.ParseFromString(split.skeleton)) {
    item.id = parsed.id();
    for (size_t i = 0; i < kUnaryOperations; ++i) {
      if (parsed.request_case() == static_cast<int>(kMethods[i].item_field)) {
        item.method = kMethods[i].method;
      }
    }
    item.request = ConvertItem(parsed, split);
    return item;
  }
  // The error of a bad request should find its way back, too.
  item.request = Malformed("StreamRequest");
  Scanner scanner(message);
  Field field;
  while (scanner.Next(field)) {
    if (!field.Is(kIdField, WireType::kVarint)) continue;
    v1::StreamRequest id;
    if (id.ParseFromArray(field.whole.data(), static_cast<int>(field.whole.size()))) {
      item.id = id.id();
    }
  }
  return item;
}

uint64_t DecodeMemoryBytes(bool is_item, BytesView message) {
  return kDecodeFactor * RestBytes(is_item, message);
}

}  // namespace quantd::wire
