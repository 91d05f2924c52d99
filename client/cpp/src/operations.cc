#include "operations.h"

#include <utility>

#include "messages.h"
#include "split.h"
#include "status_macros.h"

namespace quantd::client {
namespace {

using Stub = v1::QuantizationService::Stub;

auto MethodOf(const QuantizeArguments&) { return &Stub::Quantize; }
auto MethodOf(const DequantizeArguments&) { return &Stub::Dequantize; }
auto MethodOf(const DynamicQuantizeArguments&) { return &Stub::DynamicQuantize; }
auto MethodOf(const QuantizeEmbeddingsArguments&) { return &Stub::QuantizeEmbeddings; }

void Remember(const Tensor& x, const Granularity& granularity, Quantized& result) {
  result.granularity = granularity;
  result.original_type = x.data_type;
}

template <typename Arguments>
absl::StatusOr<typename Arguments::Result> Split(Connection& connection, const ServerLimits& limits,
                                                 Cancellation* cancellation, const Arguments& a) {
  const Sender<Arguments> send = [&](const typename Arguments::Request& request) {
    return connection.Call(MethodOf(a), request, cancellation);
  };
  return InPieces(a, limits, send);
}

bool InMemory(const Tensor& tensor) { return !tensor.shared.has_value(); }
template <typename Arguments>
bool AllInMemory(const Arguments& a) {
  return InMemory(a.scale) && (!a.zero_point.has_value() || InMemory(*a.zero_point));
}
bool AllInMemory(const DynamicQuantizeArguments&) { return true; }

bool AllInMemory(const QuantizeEmbeddingsArguments& a) {
  return !a.options.ranges.has_value() || InMemory(*a.options.ranges);
}

// Tensors in shared memory are not sent, whatever their size.
template <typename Arguments>
bool CanBeSplit(const Connection& connection, const Arguments& arguments) {
  return connection.options().split && InMemory(arguments.x) && !arguments.x.data.empty() &&
         !arguments.options.output.has_value() && AllInMemory(arguments);
}

template <typename Arguments>
typename Arguments::Request WithScale(const Arguments& a) {
  typename Arguments::Request request = RequestOf(a.options);
  SetTensor(a.x, request.mutable_x());
  SetTensor(a.scale, request.mutable_scale());
  if (a.zero_point.has_value()) SetTensor(*a.zero_point, request.mutable_zero_point());
  if (a.options.output.has_value()) SetPlace(*a.options.output, request.mutable_output());
  return request;
}

}  // namespace

v1::QuantizeRequest RequestOf(const QuantizeArguments& a) { return WithScale(a); }
v1::DequantizeRequest RequestOf(const DequantizeArguments& a) { return WithScale(a); }

v1::DynamicQuantizeRequest RequestOf(const DynamicQuantizeArguments& a) {
  v1::DynamicQuantizeRequest request = RequestOf(a.options);
  SetTensor(a.x, request.mutable_x());
  if (a.options.output.has_value()) SetPlace(*a.options.output, request.mutable_output());
  return request;
}

v1::QuantizeEmbeddingsRequest RequestOf(const QuantizeEmbeddingsArguments& a) {
  v1::QuantizeEmbeddingsRequest request = RequestOf(a.options);
  SetTensor(a.x, request.mutable_x());
  if (a.options.output.has_value()) SetPlace(*a.options.output, request.mutable_output());
  return request;
}

Quantized ResultOf(const QuantizeArguments& a, v1::QuantizeResponse&& response) {
  Quantized result = TakeResult(std::move(response));
  result.scale = a.scale;
  result.zero_point = a.zero_point;
  Remember(a.x, a.options.granularity, result);
  return result;
}

Tensor ResultOf(const DequantizeArguments&, v1::DequantizeResponse&& response) {
  return TakeTensor(std::move(*response.mutable_y()));
}

Quantized ResultOf(const DynamicQuantizeArguments& a, v1::DynamicQuantizeResponse&& response) {
  Quantized result = TakeResult(std::move(response));
  Remember(a.x, a.options.granularity, result);
  return result;
}

QuantizedEmbeddings ResultOf(const QuantizeEmbeddingsArguments&,
                             v1::QuantizeEmbeddingsResponse&& response) {
  QuantizedEmbeddings result;
  result.y = TakeTensor(std::move(*response.mutable_y()));
  if (response.has_quantization_error()) result.error = response.quantization_error();
  return result;
}

template <typename Arguments>
bool MayBeTooLarge(Connection& connection, const Arguments& arguments) {
  if (!CanBeSplit(connection, arguments)) return false;
  return !Fits(arguments, connection.KnownLimits().value_or(kAskBeyond));
}

template <typename Arguments>
absl::StatusOr<typename Arguments::Result> Run(Connection& connection, const Arguments& arguments,
                                               Cancellation* cancellation) {
  std::optional<ServerLimits> limits = connection.KnownLimits();
  if (MayBeTooLarge(connection, arguments)) {
    QUANTD_ASSIGN_OR_RETURN(limits, connection.Limits(false, cancellation));
    if (!Fits(arguments, *limits)) {
      auto result = Split(connection, *limits, cancellation, arguments);
      if (!absl::IsResourceExhausted(result.status())) return result;
      // Another server may have answered, with lower limits.
      const absl::StatusOr<ServerLimits> again = connection.Limits(true, cancellation);
      if (!again.ok() || *again == *limits) return result;
      return Split(connection, *again, cancellation, arguments);
    }
  }
  absl::StatusOr<typename Arguments::Response> response =
      connection.Call(MethodOf(arguments), RequestOf(arguments), cancellation);
  if (response.ok()) return ResultOf(arguments, *std::move(response));
  if (!absl::IsResourceExhausted(response.status()) || !CanBeSplit(connection, arguments)) {
    return response.status();
  }
  // A small request for a server with an even lower limit, or another server has answered.
  const absl::StatusOr<ServerLimits> asked = connection.Limits(true, cancellation);
  if (!asked.ok() || (limits.has_value() && *asked == *limits) || Fits(arguments, *asked)) {
    return response.status();
  }
  return Split(connection, *asked, cancellation, arguments);
}

template bool MayBeTooLarge(Connection&, const QuantizeArguments&);
template bool MayBeTooLarge(Connection&, const DequantizeArguments&);
template bool MayBeTooLarge(Connection&, const DynamicQuantizeArguments&);
template bool MayBeTooLarge(Connection&, const QuantizeEmbeddingsArguments&);
template absl::StatusOr<Quantized> Run(Connection&, const QuantizeArguments&, Cancellation*);
template absl::StatusOr<Tensor> Run(Connection&, const DequantizeArguments&, Cancellation*);
template absl::StatusOr<Quantized> Run(Connection&, const DynamicQuantizeArguments&, Cancellation*);
template absl::StatusOr<QuantizedEmbeddings> Run(Connection&, const QuantizeEmbeddingsArguments&,
                                                 Cancellation*);

}  // namespace quantd::client
