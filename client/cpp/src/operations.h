// The calls with the program's tensors, in one message or several.
#ifndef QUANTD_CLIENT_CPP_OPERATIONS_H_
#define QUANTD_CLIENT_CPP_OPERATIONS_H_

#include <optional>

#include "absl/status/statusor.h"
#include "connection.h"
#include "quantd/client/options.h"

namespace quantd::client {

// Beyond these limits the server is asked for its own before a request is sent; smaller requests
// are sent at once, and the server may refuse them.
inline constexpr ServerLimits kAskBeyond{1 << 20, UINT64_MAX};

// The arguments of a call, which outlive it.
template <typename TheRequest, typename TheResponse, typename TheResult, typename Options>
struct ArgumentsWithScale {
  using Request = TheRequest;
  using Response = TheResponse;
  using Result = TheResult;
  const Tensor& x;
  const Tensor& scale;
  const std::optional<Tensor>& zero_point;
  const Options& options;
};
using QuantizeArguments =
    ArgumentsWithScale<v1::QuantizeRequest, v1::QuantizeResponse, Quantized, QuantizeOptions>;
using DequantizeArguments =
    ArgumentsWithScale<v1::DequantizeRequest, v1::DequantizeResponse, Tensor, DequantizeOptions>;
struct DynamicQuantizeArguments {
  using Request = v1::DynamicQuantizeRequest;
  using Response = v1::DynamicQuantizeResponse;
  using Result = Quantized;
  const Tensor& x;
  const DynamicQuantizeOptions& options;
};
struct QuantizeEmbeddingsArguments {
  using Request = v1::QuantizeEmbeddingsRequest;
  using Response = v1::QuantizeEmbeddingsResponse;
  using Result = QuantizedEmbeddings;
  const Tensor& x;
  const EmbeddingOptions& options;
};

// The single message, and how to read its response.
v1::QuantizeRequest RequestOf(const QuantizeArguments& arguments);
v1::DequantizeRequest RequestOf(const DequantizeArguments& arguments);
v1::DynamicQuantizeRequest RequestOf(const DynamicQuantizeArguments& arguments);
v1::QuantizeEmbeddingsRequest RequestOf(const QuantizeEmbeddingsArguments& arguments);
Quantized ResultOf(const QuantizeArguments& arguments, v1::QuantizeResponse&& response);
Tensor ResultOf(const DequantizeArguments& arguments, v1::DequantizeResponse&& response);
Quantized ResultOf(const DynamicQuantizeArguments& arguments,
                   v1::DynamicQuantizeResponse&& response);
QuantizedEmbeddings ResultOf(const QuantizeEmbeddingsArguments& arguments,
                             v1::QuantizeEmbeddingsResponse&& response);

// Whether it may be too large for one message: it is large, or larger than the known limit of the
// server.
template <typename Arguments>
bool MayBeTooLarge(Connection& connection, const Arguments& arguments);

// The whole call. `cancellation` may be null.
template <typename Arguments>
absl::StatusOr<typename Arguments::Result> Run(Connection& connection, const Arguments& arguments,
                                               Cancellation* cancellation);

}  // namespace quantd::client

#endif  // QUANTD_CLIENT_CPP_OPERATIONS_H_
