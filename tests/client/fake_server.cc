#include "fake_server.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/operations/operation.h"
#include "server/wire/decode.h"
#include "server/wire/encode.h"

namespace quantd::client {
namespace {

template <typename Response>
absl::StatusOr<Response> Serve(wire::Method method, const google::protobuf::MessageLite& message,
                               size_t message_bytes) {
  static const auto* const executor = new Executor(1);
  const auto fit = [message_bytes](size_t bytes) {
    if (bytes <= message_bytes) return absl::OkStatus();
    return absl::ResourceExhaustedError(
        absl::StrCat("a message of ", bytes, " bytes, ", message_bytes, " allowed"));
  };
  const std::string bytes = message.SerializeAsString();
  if (absl::Status fits = fit(bytes.size()); !fits.ok()) return fits;
  const absl::StatusOr<wire::Request> request =
      wire::DecodeRequest(method, {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  if (!request.ok()) return request.status();
  const absl::StatusOr<operations::Operation> operation = operations::Plan(*request);
  if (!operation.ok()) return operation.status();
  memory::Pool pool;
  wire::Response response(operation->response_layout(), pool);
  absl::Status status = operation->Execute(*executor, [] { return false; }, response.contents());
  if (!status.ok()) return status;
  const memory::Piece piece = std::move(response).Finish();
  if (status = fit(piece.size); !status.ok()) return status;
  Response parsed;
  if (!parsed.ParseFromArray(piece.begin, static_cast<int>(piece.size))) std::abort();
  return parsed;
}

}  // namespace

absl::StatusOr<v1::QuantizeResponse> FakeServer::Answer(const v1::QuantizeRequest& request) {
  ++calls_;
  return Serve<v1::QuantizeResponse>(wire::Method::kQuantize, request, message_bytes_);
}

absl::StatusOr<v1::DequantizeResponse> FakeServer::Answer(const v1::DequantizeRequest& request) {
  ++calls_;
  return Serve<v1::DequantizeResponse>(wire::Method::kDequantize, request, message_bytes_);
}

absl::StatusOr<v1::DynamicQuantizeResponse> FakeServer::Answer(
    const v1::DynamicQuantizeRequest& request) {
  ++calls_;
  return Serve<v1::DynamicQuantizeResponse>(wire::Method::kDynamicQuantize, request,
                                            message_bytes_);
}

}  // namespace quantd::client
