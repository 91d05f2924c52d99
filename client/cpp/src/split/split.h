// A request that is larger than a message, in several whose responses together are that of one.
#ifndef QUANTD_CLIENT_CPP_SPLIT_SPLIT_H_
#define QUANTD_CLIENT_CPP_SPLIT_SPLIT_H_

#include <cstdint>
#include <functional>
#include <optional>

#include "absl/status/statusor.h"
#include "connection.h"
#include "quantd/client/options.h"

namespace quantd::client::split {

// How pieces are sent, from several threads at once, and what their messages may take.
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

// Bytes of a request and of its response, at most.
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

// As the client's calls. INVALID_ARGUMENT, naming the field, for what no server would take;
// RESOURCE_EXHAUSTED when even the smallest piece is too large; otherwise the error of the first
// piece that failed, no further one being started.
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
