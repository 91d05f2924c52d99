// The calls with the program's tensors, in one message or several.
#ifndef QUANTD_CLIENT_CPP_OPERATIONS_H_
#define QUANTD_CLIENT_CPP_OPERATIONS_H_

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "connection.h"
#include "messages.h"
#include "quantd/client/options.h"
#include "split.h"
#include "status_macros.h"

namespace quantd::client {

// Beyond these limits the server is asked for its own before a request is sent; smaller requests
// are sent at once, and the server may refuse them.
inline constexpr ServerLimits kAskBeyond{1 << 20, UINT64_MAX};

// Tensors in shared memory are not sent, whatever their size.
template <typename Arguments>
bool CanBeSplit(const Connection& connection, const Arguments& a) {
  const std::vector<const Tensor*> beside = TensorsBeside(a);
  return connection.options().split && !a.x.shared.has_value() && !a.x.data.empty() &&
         !a.options.output.has_value() &&
         std::none_of(beside.begin(), beside.end(),
                      [](const Tensor* tensor) { return tensor->shared.has_value(); });
}

// Whether it may be too large for one message: it is large, or larger than the known limit of the
// server.
template <typename Arguments>
bool MayBeTooLarge(const Connection& connection, const Arguments& arguments) {
  return CanBeSplit(connection, arguments) &&
         !Fits(arguments, connection.KnownLimits().value_or(kAskBeyond));
}

// The whole call. `cancellation` may be null.
template <typename Arguments>
absl::StatusOr<typename Arguments::Result> Run(Connection& connection, const Arguments& arguments,
                                               Cancellation* cancellation) {
  const Sender<Arguments> send = [&](const typename Arguments::Request& request) {
    return connection.Call(Arguments::kMethod, request, cancellation);
  };
  std::optional<ServerLimits> limits = connection.KnownLimits();
  if (MayBeTooLarge(connection, arguments)) {
    QUANTD_ASSIGN_OR_RETURN(limits, connection.Limits(false, cancellation));
    if (!Fits(arguments, *limits)) {
      auto result = InPieces(arguments, *limits, send);
      if (!absl::IsResourceExhausted(result.status())) return result;
      // Another server may have answered, with lower limits.
      const absl::StatusOr<ServerLimits> again = connection.Limits(true, cancellation);
      if (!again.ok() || *again == *limits) return result;
      return InPieces(arguments, *again, send);
    }
  }
  absl::StatusOr<typename Arguments::Response> response = send(WholeRequest(arguments));
  if (response.ok()) return ResultOf(arguments, *std::move(response));
  if (!absl::IsResourceExhausted(response.status()) || !CanBeSplit(connection, arguments)) {
    return response.status();
  }
  // A small request for a server with an even lower limit, or another server has answered.
  const absl::StatusOr<ServerLimits> asked = connection.Limits(true, cancellation);
  if (!asked.ok() || (limits.has_value() && *asked == *limits) || Fits(arguments, *asked)) {
    return response.status();
  }
  return InPieces(arguments, *asked, send);
}

}  // namespace quantd::client

#endif  // QUANTD_CLIENT_CPP_OPERATIONS_H_
