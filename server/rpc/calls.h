// The functions that serve the calls of QuantizationService. For the rules that they follow see
// README.md.
#ifndef QUANTD_SERVER_RPC_CALLS_H_
#define QUANTD_SERVER_RPC_CALLS_H_

#include "absl/status/status.h"
#include "server/rpc/backend.h"
#include "server/rpc/call.h"
#include "server/transport/server_call.h"
#include "server/wire/method.h"

namespace quantd::rpc {

// Serves an operation. REQUIRES: &calls == &backend.calls, as for all of them.
Call ServeUnary(Calls& calls, Backend& backend, transport::ServerCall& stream, wire::Method method);

// Stream.
Call ServeStream(Calls& calls, Backend& backend, transport::ServerCall& stream);

// The status of streams that the server ends because it drains.
absl::Status Draining();

}  // namespace quantd::rpc

#endif  // QUANTD_SERVER_RPC_CALLS_H_
