// Calls with one small request and one small response, which a function makes at once.
#ifndef QUANTD_SERVER_SERVICES_ONE_RESPONSE_H_
#define QUANTD_SERVER_SERVICES_ONE_RESPONSE_H_

#include <functional>

#include "absl/status/statusor.h"
#include "server/rpc/backend.h"
#include "server/rpc/call.h"
#include "server/services/messages.h"

namespace quantd::services {

// The response as bytes to send (messages.h), or why there is none. Called on any loop's leader.
using Response = std::function<absl::StatusOr<memory::Piece>(const transport::Message& request)>;

// `response` outlives every call. `method`: counted as such; null: not counted.
rpc::Call ServeOneResponse(rpc::Calls& calls, const rpc::Backend& backend,
                           transport::ServerCall& stream, const Response& response,
                           const wire::Method* method);

}  // namespace quantd::services

#endif  // QUANTD_SERVER_SERVICES_ONE_RESPONSE_H_
