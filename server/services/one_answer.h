// Calls with one small request and one small answer, which a function makes at once.
#ifndef QUANTD_SERVER_SERVICES_ONE_ANSWER_H_
#define QUANTD_SERVER_SERVICES_ONE_ANSWER_H_

#include <functional>

#include "absl/status/statusor.h"
#include "server/rpc/backend.h"
#include "server/rpc/call.h"
#include "server/services/messages.h"

namespace quantd::services {

// The answer as bytes to send (messages.h), or why there is none. Called on any loop's leader.
using Answer = std::function<absl::StatusOr<memory::Piece>(const transport::Message& request)>;

// `answer` outlives every call. `method`: counted as such; null: not counted.
rpc::Call ServeOneAnswer(rpc::Calls& calls, const rpc::Backend& backend, transport::Stream& stream,
                         const Answer& answer, const wire::Method* method);

}  // namespace quantd::services

#endif  // QUANTD_SERVER_SERVICES_ONE_ANSWER_H_
