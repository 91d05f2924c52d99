// See channelz.h.
#include "server/services/channelz.h"

#include "absl/strings/str_cat.h"
#include "server/services/messages.h"

namespace quantd::services {
namespace {

using namespace grpc::channelz::v1;  // NOLINT(google-build-using-namespace): a dozen messages

constexpr int64_t kServer = 1;

}  // namespace

grpc::channelz::v1::Server Channelz::Server() const {
  grpc::channelz::v1::Server server;
  server.mutable_ref()->set_server_id(kServer);
  server.mutable_ref()->set_name("quantd");
  uint64_t started = 0, succeeded = 0, ended = 0;
  for (const wire::MethodInfo& info : wire::kMethods) {
    metrics::MethodMetrics& method = metrics_.method(info.method);
    started += method.started.value();
    succeeded += method.handled[0].value();
    for (const metrics::Counter& counter : method.handled) ended += counter.value();
  }
  server.mutable_data()->set_calls_started(static_cast<int64_t>(started));
  server.mutable_data()->set_calls_succeeded(static_cast<int64_t>(succeeded));
  server.mutable_data()->set_calls_failed(static_cast<int64_t>(ended - succeeded));
  for (size_t i = 0; i < addresses_.size(); ++i) {
    SocketRef& socket = *server.add_listen_socket();
    socket.set_socket_id(kServer + 1 + static_cast<int64_t>(i));
    socket.set_name(addresses_[i]);
  }
  return server;
}

absl::StatusOr<memory::Piece> Channelz::GetTopChannels(const transport::Message& request) const {
  GetTopChannelsRequest parsed;
  if (absl::Status status = Parse(request, parsed); !status.ok()) return status;
  GetTopChannelsResponse response;
  response.set_end(true);
  return Serialize(response, pool_);
}

absl::StatusOr<memory::Piece> Channelz::GetServers(const transport::Message& request) const {
  GetServersRequest parsed;
  if (absl::Status status = Parse(request, parsed); !status.ok()) return status;
  GetServersResponse response;
  if (parsed.start_server_id() <= kServer) *response.add_server() = Server();
  response.set_end(true);
  return Serialize(response, pool_);
}

absl::StatusOr<memory::Piece> Channelz::GetServer(const transport::Message& request) const {
  GetServerRequest parsed;
  if (absl::Status status = Parse(request, parsed); !status.ok()) return status;
  if (parsed.server_id() != kServer) {
    return absl::NotFoundError(
        absl::StrCat("server_id is ", parsed.server_id(), ", the only server is ", kServer));
  }
  GetServerResponse response;
  *response.mutable_server() = Server();
  return Serialize(response, pool_);
}

}  // namespace quantd::services
