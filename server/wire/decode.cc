#include "server/wire/decode.h"

#include <algorithm>
#include <string>
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
  if constexpr (requires { message.parameters(); }) {
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
  return ConvertComplete(message, split.of(method), find);
}

void ConvertItem(v1::StreamRequest& parsed, const Split& split, FindSet find, StreamItem& item) {
  const auto convert = [&](Method method, auto& message) {
    item.method = method;
    item.request = ConvertComplete(message, split.of(method), find);
  };
  switch (parsed.request_case()) {
    case v1::StreamRequest::kQuantize:
      return convert(Method::kQuantize, *parsed.mutable_quantize());
    case v1::StreamRequest::kDequantize:
      return convert(Method::kDequantize, *parsed.mutable_dequantize());
    case v1::StreamRequest::kDynamicQuantize:
      return convert(Method::kDynamicQuantize, *parsed.mutable_dynamic_quantize());
    case v1::StreamRequest::kQuantizeEmbeddings:
      return convert(Method::kQuantizeEmbeddings, *parsed.mutable_quantize_embeddings());
    case v1::StreamRequest::REQUEST_NOT_SET:
      break;
  }
  item.request = FieldError(
      "request", "none of quantize, dequantize, dynamic_quantize and quantize_embeddings is set");
}

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
    case Method::kDynamicQuantize:
      return Decode<v1::DynamicQuantizeRequest>(method, message, find);
    case Method::kCalibrate:
    case Method::kStream:
    case Method::kGetServerInfo:
    case Method::kPutParameters:
    case Method::kGetParameters:
    case Method::kListParameters:
      break;
  }
  return absl::InternalError(absl::StrCat(Name(method), " is not an operation with one request"));
}

StreamItem DecodeStreamItem(BytesView message, FindSet find) {
  const Split split = SplitRequest(Method::kStream, message);
  v1::StreamRequest parsed;
  StreamItem item;
  if (split.ok && parsed.ParseFromString(split.skeleton)) {
    item.id = parsed.id();
    ConvertItem(parsed, split, find, item);
    return item;
  }
  // The error of a bad request should find its way back, too.
  item.request = Malformed("StreamRequest");
  Scanner scanner(message);
  Field field;
  while (scanner.Next(field)) {
    if (!field.Is(v1::StreamRequest::kIdFieldNumber, WireType::kVarint)) continue;
    v1::StreamRequest id;
    if (id.ParseFromArray(field.whole.data(), static_cast<int>(field.whole.size()))) {
      item.id = id.id();
    }
  }
  return item;
}

uint64_t DecodeMemoryBytes(Method method, BytesView message) {
  const Rest rest = RestOf(method, message);
  return kDecodeFactor * (rest.bytes - rest.packed_floats) +
         kPackedFloatFactor * rest.packed_floats;
}

uint64_t DecodeNanoseconds(Method method, BytesView message) {
  return kDecodeFactor * RestOf(method, message).bytes;
}

}  // namespace quantd::wire
