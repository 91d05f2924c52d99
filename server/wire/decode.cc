#include "server/wire/decode.h"

#include <algorithm>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "quantd/v1/quantization.pb.h"
#include "server/errors/reason.h"
#include "server/wire/convert.h"
#include "server/wire/split.h"
#include "server/wire/stored_set.h"

namespace quantd::wire {
namespace {

absl::Status Malformed(absl::string_view message_name) {
  return absl::InvalidArgumentError(
      absl::StrCat("the message is truncated or not a quantd.v1.", message_name));
}

// Of what a request names: completed, if it names a stored set, and converted.
template <typename Message>
absl::StatusOr<Request> ConvertComplete(Message& message, RawData raw, FindSet find) {
  std::shared_ptr<const StoredSet> set;
  if constexpr (!std::is_same_v<Message, v1::DynamicQuantizeRequest>) {
    if (!message.parameters().empty()) {
      auto found = find(message.parameters());
      if (!found.ok()) return found.status();
      set = *std::move(found);
      if (set == nullptr) {
        Request request;
        request.missing_set = message.parameters();
        return request;
      }
      if (absl::Status status = Complete(*set, message, raw); !status.ok()) return status;
    }
  }
  absl::StatusOr<Request> request = Convert(message, raw);
  if (request.ok() && set != nullptr) {
    request->stored = set->reference;
    request->stored_set = std::move(set);
  }
  return request;
}

template <typename Message>
absl::StatusOr<Request> Decode(Method method, BytesView bytes, FindSet find) {
  const Split split = SplitRequest(method, bytes);
  Message message;
  if (!split.ok || !message.ParseFromString(split.skeleton)) {
    return Malformed(message.GetDescriptor()->name());
  }
  return ConvertComplete(message, split.raw[OperationIndex(method)], find);
}

absl::StatusOr<Request> ConvertItem(v1::StreamRequest& item, const Split& split, FindSet find) {
  const auto raw = [&split](Method method) { return split.raw[OperationIndex(method)]; };
  switch (item.request_case()) {
    case v1::StreamRequest::kQuantize:
      return ConvertComplete(*item.mutable_quantize(), raw(Method::kQuantize), find);
    case v1::StreamRequest::kDequantize:
      return ConvertComplete(*item.mutable_dequantize(), raw(Method::kDequantize), find);
    case v1::StreamRequest::kDynamicQuantize:
      return ConvertComplete(*item.mutable_dynamic_quantize(), raw(Method::kDynamicQuantize), find);
    case v1::StreamRequest::kQuantizeEmbeddings:
      return ConvertComplete(*item.mutable_quantize_embeddings(), raw(Method::kQuantizeEmbeddings),
                             find);
    case v1::StreamRequest::REQUEST_NOT_SET:
      break;
  }
  return FieldError(
      "request", "none of quantize, dequantize, dynamic_quantize and quantize_embeddings is set");
}

constexpr uint32_t kIdField = 1;

}  // namespace

absl::StatusOr<std::shared_ptr<const StoredSet>> NoSets(absl::string_view /*reference*/) {
  return errors::WithReason(
      FieldError("parameters",
                 "parameters is set, but this server stores no parameters (--parameters_dir)",
                 absl::StatusCode::kFailedPrecondition),
      "NO_PARAMETERS_DIR");
}

absl::StatusOr<Request> DecodeRequest(Method method, BytesView message, FindSet find) {
  switch (method) {
    case Method::kQuantize:
      return Decode<v1::QuantizeRequest>(method, message, find);
    case Method::kDequantize:
      return Decode<v1::DequantizeRequest>(method, message, find);
    case Method::kQuantizeEmbeddings:
      return Decode<v1::QuantizeEmbeddingsRequest>(method, message, find);
    default:
      return Decode<v1::DynamicQuantizeRequest>(method, message, find);
  }
}

StreamItem DecodeStreamItem(BytesView message, FindSet find) {
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
    item.request = ConvertItem(parsed, split, find);
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
  const uint64_t floats = PackedFloatBytes(is_item, message);
  return kDecodeFactor * (RestBytes(is_item, message) - floats) + kPackedFloatFactor * floats;
}

uint64_t DecodeNanoseconds(bool is_item, BytesView message) {
  return kDecodeFactor * RestBytes(is_item, message);
}

uint64_t PutDecodeMemoryBytes(BytesView message) { return kDecodeFactor * PutRestBytes(message); }

}  // namespace quantd::wire
