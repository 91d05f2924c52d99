// The functions that serve the calls of QuantizationService, and calls with one small response of
// any service. For the rules that they follow see README.md.
#ifndef QUANTD_SERVER_RPC_CALLS_H_
#define QUANTD_SERVER_RPC_CALLS_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/rpc/backend.h"
#include "server/rpc/call.h"
#include "server/transport/server_call.h"
#include "server/wire/method.h"

namespace quantd::rpc {

// Serves an operation. REQUIRES: &calls == &backend.calls, as for all of them.
Call ServeUnary(Calls& calls, Backend& backend, transport::ServerCall& stream, wire::Method method);

// Stream.
Call ServeStream(Calls& calls, Backend& backend, transport::ServerCall& stream);

// A small response as bytes to send (exchange.h), or an error. Made at once, by the leader of any
// loop.
using Response = std::function<absl::StatusOr<memory::Piece>(const transport::Message& request)>;

// `response` outlives every call. `method`: the one that calls count as; null: not counted.
Call ServeOneResponse(Calls& calls, const Backend& backend, transport::ServerCall& stream,
                      const Response& response, const wire::Method* method);

// The status of streams that the server ends because it drains.
absl::Status Draining();

}  // namespace quantd::rpc

#endif  // QUANTD_SERVER_RPC_CALLS_H_
