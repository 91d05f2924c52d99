// grpc.reflection.v1 (and v1alpha) ServerReflection: the server's services and their protos, for
// tools such as grpcurl.
#ifndef QUANTD_SERVER_RPC_REFLECTION_H_
#define QUANTD_SERVER_RPC_REFLECTION_H_

#include <optional>
#include <string>
#include <vector>

#include "grpc/reflection/v1/reflection.pb.h"
#include "server/memory/buffer.h"
#include "server/rpc/call.h"
#include "server/rpc/exchange.h"
#include "server/transport/server_call.h"

namespace quantd::rpc {

// Thread-safe. Outlives every call.
class Reflection {
 public:
  // Lists these services. Knows all protos that are compiled into the program.
  Reflection(std::vector<std::string> services, memory::Pool& pool)
      : services_(std::move(services)), pool_(pool) {}

  // The response to one request.
  grpc::reflection::v1::ServerReflectionResponse ResponseTo(
      const grpc::reflection::v1::ServerReflectionRequest& request) const;

  // Serves ServerReflectionInfo. The messages of both versions are the same.
  static Call Serve(Calls& calls, const Reflection& reflection, transport::ServerCall& stream);

 private:
  std::optional<Exchange::Awaited> Respond(Exchange& call) const;

  const std::vector<std::string> services_;
  memory::Pool& pool_;
};

}  // namespace quantd::rpc

#endif  // QUANTD_SERVER_RPC_REFLECTION_H_
