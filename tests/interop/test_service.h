// grpc.testing.TestService, as gRPC's interop-test-descriptions define it: the service that gRPC's
// own clients call.
#ifndef QUANTD_TESTS_INTEROP_TEST_SERVICE_H_
#define QUANTD_TESTS_INTEROP_TEST_SERVICE_H_

#include "server/memory/buffer.h"
#include "server/rpc/call.h"
#include "server/rpc/router.h"

namespace quantd::interop {

// To be passed to server::AddServices.
void AddTestService(rpc::Router& router, rpc::Calls& calls, memory::Pool& pool);

}  // namespace quantd::interop

#endif  // QUANTD_TESTS_INTEROP_TEST_SERVICE_H_
