// ParametersService: sets of parameters, stored, read and listed by calls.
#ifndef QUANTD_SERVER_SERVICES_PARAMETERS_SERVICE_H_
#define QUANTD_SERVER_SERVICES_PARAMETERS_SERVICE_H_

#include "server/rpc/backend.h"
#include "server/rpc/call.h"
#include "server/transport/server_call.h"
#include "server/wire/method.h"

namespace quantd::services {

// One of its methods.
struct ParametersMethod {
  wire::Method method;
  // What a call takes at most, its request included; sets in memory are not among it.
  uint64_t (*bound)(const transport::Message& request);
  absl::StatusOr<memory::Piece> (*response)(stored_parameters::Library& library,
                                            const transport::Message& request, memory::Pool& pool);
};
extern const ParametersMethod kPutParameters, kGetParameters, kListParameters;

// A call of it: it waits for memory as others do, and its work is done on the thread that waits for
// the disk. `of` outlives every call.
rpc::Call ServeParameters(rpc::Calls& calls, rpc::Backend& backend, transport::ServerCall& stream,
                          const ParametersMethod& of);

}  // namespace quantd::services

#endif  // QUANTD_SERVER_SERVICES_PARAMETERS_SERVICE_H_
