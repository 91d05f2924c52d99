// ParametersService: storing, reading and listing sets of parameters.
#ifndef QUANTD_SERVER_SERVICES_PARAMETERS_SERVICE_H_
#define QUANTD_SERVER_SERVICES_PARAMETERS_SERVICE_H_

#include "server/rpc/backend.h"
#include "server/rpc/call.h"
#include "server/transport/server_call.h"
#include "server/wire/method.h"

namespace quantd::services {

// A method of the service.
struct ParametersMethod {
  wire::Method method;
  // The most memory that a call takes, its request included and sets in memory excluded.
  uint64_t (*bound)(const transport::Message& request);
  absl::StatusOr<memory::Piece> (*response)(stored_parameters::Library& library,
                                            const transport::Message& request, memory::Pool& pool);
};
extern const ParametersMethod kPutParameters, kGetParameters, kListParameters;

// Serves a call: it waits for memory like other calls, and its work is done on the thread that
// waits for the disk. `of` outlives every call.
rpc::Call ServeParameters(rpc::Calls& calls, rpc::Backend& backend, transport::ServerCall& stream,
                          const ParametersMethod& of);

}  // namespace quantd::services

#endif  // QUANTD_SERVER_SERVICES_PARAMETERS_SERVICE_H_
