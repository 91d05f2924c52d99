// Calls with one small request and one small response, which a function makes at once.
#ifndef QUANTD_SERVER_RPC_ONE_RESPONSE_H_
#define QUANTD_SERVER_RPC_ONE_RESPONSE_H_

#include <functional>

#include "absl/status/statusor.h"
#include "server/rpc/backend.h"
#include "server/rpc/call.h"
#include "server/rpc/messages.h"

namespace quantd::rpc {

// The response as bytes to send (messages.h), or an error. Called by the leader of any loop.
using Response = std::function<absl::StatusOr<memory::Piece>(const transport::Message& request)>;

// `response` outlives every call. `method`: the one that calls count as; null: not counted.
Call ServeOneResponse(Calls& calls, const Backend& backend, transport::ServerCall& stream,
                      const Response& response, const wire::Method* method);

}  // namespace quantd::rpc

#endif  // QUANTD_SERVER_RPC_ONE_RESPONSE_H_
