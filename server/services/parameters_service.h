// ParametersService: sets of parameters, stored, read and listed by calls.
#ifndef QUANTD_SERVER_SERVICES_PARAMETERS_SERVICE_H_
#define QUANTD_SERVER_SERVICES_PARAMETERS_SERVICE_H_

#include "server/rpc/backend.h"
#include "server/rpc/call.h"
#include "server/transport/stream.h"
#include "server/wire/method.h"

namespace quantd::services {

// One of its calls: it waits for memory as others do, and its work is done on the thread that waits
// for the disk. REQUIRES: a method of ParametersService.
rpc::Call ServeParameters(rpc::Calls& calls, rpc::Backend& backend, transport::Stream& stream,
                          wire::Method method);

}  // namespace quantd::services

#endif  // QUANTD_SERVER_SERVICES_PARAMETERS_SERVICE_H_
