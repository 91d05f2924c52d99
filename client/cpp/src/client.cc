#include "quantd/client/client.h"

#include <grpcpp/grpcpp.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "quantd/client/status.h"

namespace quantd::client {
namespace {

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  // gRPC follows http_proxy even to this very machine, where no proxy can help.
  for (const char* local : {"unix:", "127.", "localhost:", "[::1]"}) {
    if (absl::StartsWith(address, local)) arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  }
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

void Set(const SharedSpan& from, v1::SharedMemoryReference* to) {
  to->set_region(from.region);
  to->set_offset(from.offset);
  to->set_byte_size(from.byte_size);
}

void Set(const Tensor& from, v1::Tensor* to) {
  to->set_data_type(from.data_type);
  to->mutable_shape()->Add(from.shape.begin(), from.shape.end());
  if (from.shared.has_value()) {
    Set(*from.shared, to->mutable_shared_memory());
  } else {
    to->set_raw_data(from.data);
  }
}

Tensor Take(v1::Tensor&& from) {
  Tensor to{from.data_type(), {from.shape().begin(), from.shape().end()}, {}};
  if (from.has_shared_memory()) {
    const v1::SharedMemoryReference& place = from.shared_memory();
    to.shared = {place.region(), place.offset(), place.byte_size()};
  } else {
    to.data = std::move(*from.mutable_raw_data());
  }
  return to;
}

template <typename Request>
void Set(const Granularity& granularity, Request* request) {
  if (granularity.axis.has_value()) request->set_axis(*granularity.axis);
  request->set_block_size(granularity.block_size);
  request->mutable_block_shape()->Add(granularity.block_shape.begin(),
                                      granularity.block_shape.end());
}

}  // namespace

Client::Client(const std::string& address, const ClientOptions& options)
    : options_(options),
      channel_(MakeChannel(address)),
      stub_(v1::QuantizationService::NewStub(channel_)) {}

Client::~Client() = default;

template <typename Request, typename Response>
absl::StatusOr<Response> Client::Attempt(Method<Request, Response> method, const Request& request) {
  for (int attempt = 1;; ++attempt) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + options_.timeout));
    Response response;
    absl::Status status = FromGrpc((stub_.get()->*method)(&context, request, &response));
    if (status.ok()) return response;
    // Only a server that asks for it is tried again: it is there, and busy.
    const std::optional<absl::Duration> delay = RetryDelay(status);
    if (!absl::IsUnavailable(status) || !delay.has_value() || attempt >= options_.max_attempts) {
      return status;
    }
    absl::SleepFor(*delay * attempt);
  }
}

absl::StatusOr<v1::QuantizeResponse> Client::Call(const v1::QuantizeRequest& request) {
  return Attempt<v1::QuantizeRequest, v1::QuantizeResponse>(
      &v1::QuantizationService::Stub::Quantize, request);
}

absl::StatusOr<v1::DequantizeResponse> Client::Call(const v1::DequantizeRequest& request) {
  return Attempt<v1::DequantizeRequest, v1::DequantizeResponse>(
      &v1::QuantizationService::Stub::Dequantize, request);
}

absl::StatusOr<v1::DynamicQuantizeResponse> Client::Call(
    const v1::DynamicQuantizeRequest& request) {
  return Attempt<v1::DynamicQuantizeRequest, v1::DynamicQuantizeResponse>(
      &v1::QuantizationService::Stub::DynamicQuantize, request);
}

absl::StatusOr<v1::GetServerInfoResponse> Client::GetServerInfo() {
  return Attempt<v1::GetServerInfoRequest, v1::GetServerInfoResponse>(
      &v1::QuantizationService::Stub::GetServerInfo, v1::GetServerInfoRequest());
}

absl::StatusOr<Quantized> Client::Quantize(const Tensor& x, const Tensor& scale,
                                           const std::optional<Tensor>& zero_point,
                                           const QuantizeOptions& options) {
  v1::QuantizeRequest request;
  Set(x, request.mutable_x());
  Set(scale, request.mutable_scale());
  if (zero_point.has_value()) Set(*zero_point, request.mutable_zero_point());
  request.set_output_type(options.output_type);
  Set(options.granularity, &request);
  request.set_saturate(options.saturate);
  request.set_precision(options.precision);
  request.set_zero_point_order(options.zero_point_order);
  request.set_report_error(options.report_error);
  if (options.output.has_value()) Set(*options.output, request.mutable_output());
  absl::StatusOr<v1::QuantizeResponse> response = Call(request);
  if (!response.ok()) return response.status();
  Quantized result{Take(std::move(*response->mutable_y())), scale, zero_point, {}, {}};
  if (response->has_quantization_error()) result.error = response->quantization_error();
  return result;
}

absl::StatusOr<Tensor> Client::Dequantize(const Tensor& x, const Tensor& scale,
                                          const std::optional<Tensor>& zero_point,
                                          const DequantizeOptions& options) {
  v1::DequantizeRequest request;
  Set(x, request.mutable_x());
  Set(scale, request.mutable_scale());
  if (zero_point.has_value()) Set(*zero_point, request.mutable_zero_point());
  request.set_output_type(options.output_type);
  Set(options.granularity, &request);
  if (options.tensor_scale.has_value()) {
    Set(*options.tensor_scale, request.mutable_tensor_scale());
  }
  if (options.output.has_value()) Set(*options.output, request.mutable_output());
  absl::StatusOr<v1::DequantizeResponse> response = Call(request);
  if (!response.ok()) return response.status();
  return Take(std::move(*response->mutable_y()));
}

absl::StatusOr<Quantized> Client::DynamicQuantize(const Tensor& x,
                                                  const DynamicQuantizeOptions& options) {
  v1::DynamicQuantizeRequest request;
  Set(x, request.mutable_x());
  request.set_output_type(options.output_type);
  Set(options.granularity, &request);
  request.set_saturate(options.saturate);
  request.set_scale_type(options.scale_type);
  request.set_symmetry(options.symmetry);
  request.set_non_finite(options.non_finite);
  request.set_report_error(options.report_error);
  if (options.output.has_value()) Set(*options.output, request.mutable_output());
  absl::StatusOr<v1::DynamicQuantizeResponse> response = Call(request);
  if (!response.ok()) return response.status();
  Quantized result{Take(std::move(*response->mutable_y())),
                   Take(std::move(*response->mutable_y_scale())),
                   {},
                   {},
                   {}};
  if (response->has_y_zero_point()) {
    result.zero_point = Take(std::move(*response->mutable_y_zero_point()));
  }
  if (response->has_y_tensor_scale()) {
    result.tensor_scale = Take(std::move(*response->mutable_y_tensor_scale()));
  }
  if (response->has_quantization_error()) result.error = response->quantization_error();
  return result;
}

}  // namespace quantd::client
