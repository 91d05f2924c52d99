#include "quantd/client/client.h"

#include <utility>

#include "async.h"
#include "cancellation.h"
#include "connection.h"
#include "operations.h"

namespace quantd::client {
namespace {

// Arguments that live as long as an asynchronous call.
template <typename Arguments, typename Options>
struct OwnedWithScale {
  Tensor x, scale;
  std::optional<Tensor> zero_point;
  Options options;
  Arguments View() const { return {x, scale, zero_point, options}; }
};
using OwnedQuantize = OwnedWithScale<QuantizeArguments, QuantizeOptions>;
using OwnedDequantize = OwnedWithScale<DequantizeArguments, DequantizeOptions>;
struct OwnedDynamicQuantize {
  Tensor x;
  DynamicQuantizeOptions options;
  DynamicQuantizeArguments View() const { return {x, options}; }
};

template <typename Owned, typename Done>
std::shared_ptr<Cancellation> Start(Connection& connection, Owned owned, Done done) {
  auto cancellation = std::make_shared<Cancellation>();
  std::make_shared<AsyncOperation<Owned>>(connection, std::move(owned), cancellation,
                                          std::move(done))
      ->Start();
  return cancellation;
}

bool SaysNothing(const Granularity& granularity) {
  return !granularity.axis.has_value() && granularity.block_size == 0 &&
         granularity.block_shape.empty();
}

// The output type for INT32: scale's type, or FLOAT if y can't have that.
v1::DataType TypeAfterInt32(v1::DataType scale) {
  switch (scale) {
    case v1::DATA_TYPE_FLOAT16:
    case v1::DATA_TYPE_BFLOAT16:
      return scale;
    default:
      return v1::DATA_TYPE_FLOAT;
  }
}

}  // namespace

AsyncCall::AsyncCall(std::shared_ptr<Cancellation> cancellation)
    : cancellation_(std::move(cancellation)) {}

void AsyncCall::Cancel() const { cancellation_->Cancel(); }

Client::Client(const std::string& address, const ClientOptions& options)
    : connection_(std::make_unique<Connection>(address, options)) {}

Client::~Client() = default;

const absl::Status& Client::status() const { return connection_->status(); }

const std::shared_ptr<grpc::Channel>& Client::channel() const { return connection_->channel(); }

absl::StatusOr<v1::QuantizeResponse> Client::Call(const v1::QuantizeRequest& request) {
  return connection_->Call(&Stub::Quantize, request);
}

absl::StatusOr<v1::DequantizeResponse> Client::Call(const v1::DequantizeRequest& request) {
  return connection_->Call(&Stub::Dequantize, request);
}

absl::StatusOr<v1::DynamicQuantizeResponse> Client::Call(
    const v1::DynamicQuantizeRequest& request) {
  return connection_->Call(&Stub::DynamicQuantize, request);
}

absl::StatusOr<v1::QuantizeEmbeddingsResponse> Client::Call(
    const v1::QuantizeEmbeddingsRequest& request) {
  return connection_->Call(&Stub::QuantizeEmbeddings, request);
}

absl::StatusOr<v1::GetServerInfoResponse> Client::GetServerInfo() {
  return connection_->Call(&Stub::GetServerInfo, v1::GetServerInfoRequest());
}

absl::StatusOr<Quantized> Client::Quantize(const Tensor& x, const Tensor& scale,
                                           const std::optional<Tensor>& zero_point,
                                           const QuantizeOptions& options) {
  return Run(*connection_, QuantizeArguments{x, scale, zero_point, options}, nullptr);
}

absl::StatusOr<Tensor> Client::Dequantize(const Tensor& x, const Tensor& scale,
                                          const std::optional<Tensor>& zero_point,
                                          const DequantizeOptions& options) {
  return Run(*connection_, DequantizeArguments{x, scale, zero_point, options}, nullptr);
}

absl::StatusOr<Quantized> Client::DynamicQuantize(const Tensor& x,
                                                  const DynamicQuantizeOptions& options) {
  return Run(*connection_, DynamicQuantizeArguments{x, options}, nullptr);
}

absl::StatusOr<QuantizedEmbeddings> Client::QuantizeEmbeddings(const Tensor& x,
                                                               const EmbeddingOptions& options) {
  return Run(*connection_, QuantizeEmbeddingsArguments{x, options}, nullptr);
}

absl::StatusOr<Tensor> Client::Dequantize(const Quantized& quantized,
                                          const DequantizeOptions& options) {
  DequantizeOptions remembered = options;
  if (SaysNothing(options.granularity)) remembered.granularity = quantized.granularity;
  if (!options.tensor_scale.has_value()) remembered.tensor_scale = quantized.tensor_scale;
  if (options.output_type == v1::DATA_TYPE_UNSPECIFIED) {
    remembered.output_type = quantized.original_type == v1::DATA_TYPE_INT32
                                 ? TypeAfterInt32(quantized.scale.data_type)
                                 : quantized.original_type;
  }
  return Dequantize(quantized.y, quantized.scale, quantized.zero_point, remembered);
}

AsyncCall Client::QuantizeAsync(Tensor x, Tensor scale, std::optional<Tensor> zero_point,
                                QuantizeOptions options,
                                std::function<void(absl::StatusOr<Quantized>)> done) {
  return AsyncCall(Start(
      *connection_,
      OwnedQuantize{std::move(x), std::move(scale), std::move(zero_point), std::move(options)},
      std::move(done)));
}

AsyncCall Client::DequantizeAsync(Tensor x, Tensor scale, std::optional<Tensor> zero_point,
                                  DequantizeOptions options,
                                  std::function<void(absl::StatusOr<Tensor>)> done) {
  return AsyncCall(Start(
      *connection_,
      OwnedDequantize{std::move(x), std::move(scale), std::move(zero_point), std::move(options)},
      std::move(done)));
}

AsyncCall Client::DynamicQuantizeAsync(Tensor x, DynamicQuantizeOptions options,
                                       std::function<void(absl::StatusOr<Quantized>)> done) {
  return AsyncCall(
      Start(*connection_, OwnedDynamicQuantize{std::move(x), std::move(options)}, std::move(done)));
}

}  // namespace quantd::client
