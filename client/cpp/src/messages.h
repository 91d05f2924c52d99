// Converts the program's tensors and options to the contract's messages, and back.
#ifndef QUANTD_CLIENT_CPP_MESSAGES_H_
#define QUANTD_CLIENT_CPP_MESSAGES_H_

#include <optional>

#include "quantd/client/options.h"
#include "quantd/client/tensor.h"
#include "quantd/v1/quantization.pb.h"

namespace quantd::client {

// Requests without x and the place of y, because each piece of a request has its own.
v1::QuantizeRequest RequestOf(const QuantizeOptions& options);
v1::DequantizeRequest RequestOf(const DequantizeOptions& options);
v1::DynamicQuantizeRequest RequestOf(const DynamicQuantizeOptions& options);
v1::QuantizeEmbeddingsRequest RequestOf(const EmbeddingOptions& options);

void SetTensor(const Tensor& from, v1::Tensor* to);
void SetPlace(const SharedSpan& from, v1::SharedMemoryReference* to);
Tensor TakeTensor(v1::Tensor&& from);

Quantized TakeResult(v1::QuantizeResponse&& response);  // y and error
Quantized TakeResult(v1::DynamicQuantizeResponse&& response);

}  // namespace quantd::client

#endif  // QUANTD_CLIENT_CPP_MESSAGES_H_
