// A call whose tensor is larger than the server's messages, in several messages.
//
// There is one rule: x is cut along its first dimension, into ranges of rows. That gives the bits
// of one call wherever every row has its scale: the scale is given, or belongs to whole rows.
// Otherwise (one scale for all rows, a report on the whole, a row larger than a message) the call
// is an error that names the engine in the process, which has no limit.
#ifndef QUANTD_CLIENT_CPP_SPLIT_H_
#define QUANTD_CLIENT_CPP_SPLIT_H_

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "connection.h"
#include "operations.h"

namespace quantd::client {

// Whether one message suffices.
bool Fits(const QuantizeArguments& arguments, const ServerLimits& limits);
bool Fits(const DequantizeArguments& arguments, const ServerLimits& limits);
bool Fits(const DynamicQuantizeArguments& arguments, const ServerLimits& limits);
bool Fits(const QuantizeEmbeddingsArguments& arguments, const ServerLimits& limits);

// Sends a piece; called from several threads at the same time.
template <typename Arguments>
using Sender =
    std::function<absl::StatusOr<typename Arguments::Response>(const typename Arguments::Request&)>;

// The result of the whole. RESOURCE_EXHAUSTED if it cannot be cut; INVALID_ARGUMENT, with the
// field, if tensors do not fit together; otherwise the error of the first piece that failed, after
// which no piece is started.
absl::StatusOr<Quantized> InPieces(const QuantizeArguments& arguments, const ServerLimits& limits,
                                   const Sender<QuantizeArguments>& send);
absl::StatusOr<Tensor> InPieces(const DequantizeArguments& arguments, const ServerLimits& limits,
                                const Sender<DequantizeArguments>& send);
absl::StatusOr<Quantized> InPieces(const DynamicQuantizeArguments& arguments,
                                   const ServerLimits& limits,
                                   const Sender<DynamicQuantizeArguments>& send);
absl::StatusOr<QuantizedEmbeddings> InPieces(const QuantizeEmbeddingsArguments& arguments,
                                             const ServerLimits& limits,
                                             const Sender<QuantizeEmbeddingsArguments>& send);

}  // namespace quantd::client

#endif  // QUANTD_CLIENT_CPP_SPLIT_H_
