#include "server/wire/decode.h"

#include <algorithm>
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

absl::Status NoSets() {
  return errors::WithReason(
      FieldError("parameters",
                 "parameters is set, but this server stores no parameters (--parameters_dir)",
                 absl::StatusCode::kFailedPrecondition),
      "NO_PARAMETERS_DIR");
}

// Completes the request if it names a stored set, and converts it.
template <typename Message>
absl::StatusOr<Request> ConvertComplete(Message& message, RawData raw, SetPointer set) {
  if constexpr (requires { message.parameters(); }) {
    if (!message.parameters().empty()) {
      if (set == nullptr) return NoSets();
      if (absl::Status status = Complete(*set, message, raw); !status.ok()) return status;
    } else {
      set = nullptr;
    }
  } else {
    set = nullptr;
  }
  absl::StatusOr<Request> request = Convert(message, raw);
  if (request.ok() && set != nullptr) {
    request->stored = set->reference;
    request->stored_set = std::move(set);
  }
  return request;
}

absl::StatusOr<Request> ConvertItem(v1::StreamRequest& parsed, const Split& split, SetPointer set) {
  const auto convert = [&](Method method, auto& message) {
    return ConvertComplete(message, split.of(method), std::move(set));
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
  return FieldError(
      "request", "none of quantize, dequantize, dynamic_quantize and quantize_embeddings is set");
}

template <typename Message>
absl::StatusOr<Request> Decode(Method method, BytesView bytes, SetPointer set) {
  const Split split = SplitRequest(method, bytes);
  Message message;
  if (absl::Status status = Parse(split, message); !status.ok()) return status;
  if constexpr (std::is_same_v<Message, v1::StreamRequest>) {
    return ConvertItem(message, split, std::move(set));
  } else {
    return ConvertComplete(message, split.of(method), std::move(set));
  }
}

}  // namespace

absl::StatusOr<Request> DecodeRequest(Method method, BytesView message, SetPointer set) {
  switch (method) {
    case Method::kQuantize:
      return Decode<v1::QuantizeRequest>(method, message, std::move(set));
    case Method::kDequantize:
      return Decode<v1::DequantizeRequest>(method, message, std::move(set));
    case Method::kQuantizeEmbeddings:
      return Decode<v1::QuantizeEmbeddingsRequest>(method, message, std::move(set));
    case Method::kDynamicQuantize:
      return Decode<v1::DynamicQuantizeRequest>(method, message, std::move(set));
    case Method::kStream:
      return Decode<v1::StreamRequest>(method, message, std::move(set));
    case Method::kCalibrate:
    case Method::kGetServerInfo:
    case Method::kPutParameters:
    case Method::kGetParameters:
    case Method::kListParameters:
      break;
  }
  return absl::InternalError(absl::StrCat(Name(method), " is not an operation with one request"));
}

}  // namespace quantd::wire
