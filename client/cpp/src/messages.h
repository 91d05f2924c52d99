// Converts the program's tensors and options to the contract's messages, and back.
#ifndef QUANTD_CLIENT_CPP_MESSAGES_H_
#define QUANTD_CLIENT_CPP_MESSAGES_H_

#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "quantd/client/options.h"
#include "quantd/client/tensor.h"
#include "quantd/v1/quantization.grpc.pb.h"

namespace quantd::client {

using Stub = v1::QuantizationService::Stub;

// The arguments of a call, which outlive it.
template <auto kTheMethod, typename TheRequest, typename TheResponse, typename TheResult,
          typename Options>
struct ArgumentsWithScale {
  using Request = TheRequest;
  using Response = TheResponse;
  using Result = TheResult;
  static constexpr auto kMethod = kTheMethod;
  const Tensor& x;
  const Tensor& scale;
  const std::optional<Tensor>& zero_point;
  const Options& options;
};
using QuantizeArguments = ArgumentsWithScale<&Stub::Quantize, v1::QuantizeRequest,
                                             v1::QuantizeResponse, Quantized, QuantizeOptions>;
using DequantizeArguments = ArgumentsWithScale<&Stub::Dequantize, v1::DequantizeRequest,
                                               v1::DequantizeResponse, Tensor, DequantizeOptions>;
template <auto kTheMethod, typename TheRequest, typename TheResponse, typename TheResult,
          typename Options>
struct ArgumentsOfX {
  using Request = TheRequest;
  using Response = TheResponse;
  using Result = TheResult;
  static constexpr auto kMethod = kTheMethod;
  const Tensor& x;
  const Options& options;
};
using DynamicQuantizeArguments =
    ArgumentsOfX<&Stub::DynamicQuantize, v1::DynamicQuantizeRequest, v1::DynamicQuantizeResponse,
                 Quantized, DynamicQuantizeOptions>;
using QuantizeEmbeddingsArguments =
    ArgumentsOfX<&Stub::QuantizeEmbeddings, v1::QuantizeEmbeddingsRequest,
                 v1::QuantizeEmbeddingsResponse, QuantizedEmbeddings, EmbeddingOptions>;

// Whether the scales are given; whether the server finds them.
template <typename Arguments>
inline constexpr bool kGivesScale = requires(const Arguments& a) { a.scale; };
template <typename Arguments>
inline constexpr bool kFindsScale = std::is_same_v<Arguments, DynamicQuantizeArguments>;

// Requests without x and the place of y, because each piece of a request has its own.
v1::QuantizeRequest RequestOf(const QuantizeOptions& options);
v1::DequantizeRequest RequestOf(const DequantizeOptions& options);
v1::DynamicQuantizeRequest RequestOf(const DynamicQuantizeOptions& options);
v1::QuantizeEmbeddingsRequest RequestOf(const EmbeddingOptions& options);

void SetTensor(const Tensor& from, v1::Tensor* to);
void SetPlace(const SharedSpan& from, v1::SharedMemoryReference* to);
Tensor TakeTensor(v1::Tensor&& from);

// The tensors that are sent beside x.
template <typename Arguments>
std::vector<const Tensor*> TensorsBeside(const Arguments& a) {
  std::vector<const Tensor*> beside;
  if constexpr (kGivesScale<Arguments>) {
    beside.push_back(&a.scale);
    if (a.zero_point.has_value()) beside.push_back(&*a.zero_point);
  } else if constexpr (requires { a.options.ranges; }) {
    if (a.options.ranges.has_value()) beside.push_back(&*a.options.ranges);
  }
  return beside;
}

// The single message, and how to read its response.
template <typename Arguments>
typename Arguments::Request WholeRequest(const Arguments& a) {
  typename Arguments::Request request = RequestOf(a.options);
  SetTensor(a.x, request.mutable_x());
  if constexpr (kGivesScale<Arguments>) {
    SetTensor(a.scale, request.mutable_scale());
    if (a.zero_point.has_value()) SetTensor(*a.zero_point, request.mutable_zero_point());
  }
  if (a.options.output.has_value()) SetPlace(*a.options.output, request.mutable_output());
  return request;
}

template <typename Arguments>
typename Arguments::Result ResultOf(const Arguments& a, typename Arguments::Response&& response) {
  Tensor y = TakeTensor(std::move(*response.mutable_y()));
  if constexpr (std::is_same_v<typename Arguments::Result, Tensor>) {
    return y;
  } else {
    typename Arguments::Result result;
    result.y = std::move(y);
    if (response.has_quantization_error()) result.error = response.quantization_error();
    if constexpr (kGivesScale<Arguments>) {
      result.scale = a.scale;
      result.zero_point = a.zero_point;
    } else if constexpr (kFindsScale<Arguments>) {
      result.scale = TakeTensor(std::move(*response.mutable_y_scale()));
      if (response.has_y_zero_point()) {
        result.zero_point = TakeTensor(std::move(*response.mutable_y_zero_point()));
      }
      if (response.has_y_tensor_scale()) {
        result.tensor_scale = TakeTensor(std::move(*response.mutable_y_tensor_scale()));
      }
    }
    if constexpr (std::is_same_v<typename Arguments::Result, Quantized>) {
      result.granularity = a.options.granularity;
      result.original_type = a.x.data_type;
    }
    return result;
  }
}

}  // namespace quantd::client

#endif  // QUANTD_CLIENT_CPP_MESSAGES_H_
