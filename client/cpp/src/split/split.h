// Splits a request that is larger than a message; the combined responses are those of one request.
#ifndef QUANTD_CLIENT_CPP_SPLIT_SPLIT_H_
#define QUANTD_CLIENT_CPP_SPLIT_SPLIT_H_

#include <cstdint>
#include <functional>
#include <optional>

#include "absl/status/statusor.h"
#include "connection.h"
#include "quantd/client/options.h"

namespace quantd::client::split {

// Sends pieces, from several threads at the same time; with the limits of messages.
struct Sender {
  ServerLimits limits;
  std::function<absl::StatusOr<v1::QuantizeResponse>(const v1::QuantizeRequest&)> quantize;
  std::function<absl::StatusOr<v1::DequantizeResponse>(const v1::DequantizeRequest&)> dequantize;
  std::function<absl::StatusOr<v1::DynamicQuantizeResponse>(const v1::DynamicQuantizeRequest&)>
      dynamic_quantize;
  std::function<absl::StatusOr<v1::QuantizeEmbeddingsResponse>(
      const v1::QuantizeEmbeddingsRequest&)>
      quantize_embeddings;
};

// The most bytes of a request and of its response.
struct MessageSizes {
  uint64_t request = 0;
  uint64_t response = 0;
  bool Fit(const ServerLimits& limits) const;
};
MessageSizes SizesOf(const Tensor& x, const Tensor& scale, const std::optional<Tensor>& zero_point,
                     const QuantizeOptions& options);
MessageSizes SizesOf(const Tensor& x, const Tensor& scale, const std::optional<Tensor>& zero_point,
                     const DequantizeOptions& options);
MessageSizes SizesOf(const Tensor& x, const DynamicQuantizeOptions& options);
MessageSizes SizesOf(const Tensor& x, const EmbeddingOptions& options);

// Like the client's calls. INVALID_ARGUMENT, with the field, for requests that no server accepts;
// RESOURCE_EXHAUSTED if even the smallest piece is too large; otherwise the error of the first
// piece that failed, after which no piece is started.
absl::StatusOr<Quantized> Quantize(const Sender& sender, const Tensor& x, const Tensor& scale,
                                   const std::optional<Tensor>& zero_point,
                                   const QuantizeOptions& options);
absl::StatusOr<Tensor> Dequantize(const Sender& sender, const Tensor& x, const Tensor& scale,
                                  const std::optional<Tensor>& zero_point,
                                  const DequantizeOptions& options);
absl::StatusOr<Quantized> DynamicQuantize(const Sender& sender, const Tensor& x,
                                          const DynamicQuantizeOptions& options);
absl::StatusOr<QuantizedEmbeddings> QuantizeEmbeddings(const Sender& sender, const Tensor& x,
                                                       const EmbeddingOptions& options);

}  // namespace quantd::client::split

#endif  // QUANTD_CLIENT_CPP_SPLIT_SPLIT_H_
