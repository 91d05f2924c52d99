// A call whose tensor is larger than the server's messages, in several messages.
//
// There is one rule: x is cut along its first dimension, into ranges of rows. That gives the bits
// of one call wherever every row has its scale: the scale is given, or belongs to whole rows.
// Otherwise (one scale for all rows, a report on the whole, a row larger than a message) the call
// is an error that names the engine in the process, which has no limit.
#ifndef QUANTD_CLIENT_CPP_SPLIT_H_
#define QUANTD_CLIENT_CPP_SPLIT_H_

#include <functional>

#include "absl/status/statusor.h"
#include "connection.h"
#include "messages.h"

namespace quantd::client {

// Whether one message suffices.
template <typename Arguments>
bool Fits(const Arguments& arguments, const ServerLimits& limits);

// Sends a piece; called from several threads at the same time.
template <typename Arguments>
using Sender =
    std::function<absl::StatusOr<typename Arguments::Response>(const typename Arguments::Request&)>;

// The result of the whole. RESOURCE_EXHAUSTED if it cannot be cut; INVALID_ARGUMENT, with the
// field, if tensors do not fit together; otherwise the error of the first piece that failed, after
// which no piece is started.
template <typename Arguments>
absl::StatusOr<typename Arguments::Result> InPieces(const Arguments& arguments,
                                                    const ServerLimits& limits,
                                                    const Sender<Arguments>& send);

}  // namespace quantd::client

#endif  // QUANTD_CLIENT_CPP_SPLIT_H_
