#include "server/wire/decode.h"

#include <type_traits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "quantd/v1/quantization.pb.h"
#include "server/wire/convert.h"
#include "server/wire/split.h"

namespace quantd::wire {
namespace {

absl::StatusOr<Request> ConvertItem(const v1::StreamRequest& parsed, const Split& split) {
  const auto convert = [&](Method method, const auto& message) {
    return Convert(message, split.of(method));
  };
  switch (parsed.request_case()) {
    case v1::StreamRequest::kQuantize:
      return convert(Method::kQuantize, parsed.quantize());
    case v1::StreamRequest::kDequantize:
      return convert(Method::kDequantize, parsed.dequantize());
    case v1::StreamRequest::kDynamicQuantize:
      return convert(Method::kDynamicQuantize, parsed.dynamic_quantize());
    case v1::StreamRequest::kQuantizeEmbeddings:
      return convert(Method::kQuantizeEmbeddings, parsed.quantize_embeddings());
    case v1::StreamRequest::REQUEST_NOT_SET:
      break;
  }
  return FieldError(
      "request", "none of quantize, dequantize, dynamic_quantize and quantize_embeddings is set");
}

template <typename Message>
absl::StatusOr<Request> Decode(Method method, BytesView bytes) {
  const Split split = SplitRequest(method, bytes);
  Message message;
  if (absl::Status status = Parse(split, message); !status.ok()) return status;
  if constexpr (std::is_same_v<Message, v1::StreamRequest>) {
    return ConvertItem(message, split);
  } else {
    return Convert(message, split.of(method));
  }
}

}  // namespace

absl::StatusOr<Request> DecodeRequest(Method method, BytesView message) {
  switch (method) {
    case Method::kQuantize:
      return Decode<v1::QuantizeRequest>(method, message);
    case Method::kDequantize:
      return Decode<v1::DequantizeRequest>(method, message);
    case Method::kQuantizeEmbeddings:
      return Decode<v1::QuantizeEmbeddingsRequest>(method, message);
    case Method::kDynamicQuantize:
      return Decode<v1::DynamicQuantizeRequest>(method, message);
    case Method::kStream:
      return Decode<v1::StreamRequest>(method, message);
    case Method::kGetServerInfo:
      break;
  }
  return absl::InternalError(absl::StrCat(Name(method), " is not an operation with one request"));
}

}  // namespace quantd::wire
