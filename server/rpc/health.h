// grpc.health.v1.Health: whether the server answers requests, for probes and for clients that
// balance load. Its calls run on the loops like all others. They need no thread and almost no
// memory, so they are answered under any load.
//
// When the server drains, Watch streams are sent NOT_SERVING and end.
#ifndef QUANTD_SERVER_RPC_HEALTH_H_
#define QUANTD_SERVER_RPC_HEALTH_H_

#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "grpc/health/v1/health.pb.h"
#include "server/memory/buffer.h"
#include "server/rpc/call.h"
#include "server/transport/server_call.h"

namespace quantd::rpc {

// Thread-safe. Outlives every call.
class Health {
 public:
  using Status = grpc::health::v1::HealthCheckResponse::ServingStatus;

  // Knows "" (the server) and these services. They are not serving until SetServing.
  Health(std::vector<std::string> services, memory::Pool& pool);

  // Notifies every Watch stream.
  void SetServing(bool serving);
  bool serving() const;
  // Ends all Watch streams, including later ones.
  void EndWatches();

  // The response of Check; NOT_FOUND for an unknown service.
  absl::StatusOr<memory::Piece> Check(const transport::Message& request) const;
  static Call ServeWatch(Calls& calls, Health& health, transport::ServerCall& stream);

 private:
  class Watcher;
  struct State {
    Status status = Status{};
    bool ended = false;
    uint64_t version = 0;  // of everything above
  };
  State Get(const std::string& service) const;
  void Change(bool serving, bool ended);

  const std::set<std::string> services_;
  memory::Pool& pool_;
  mutable std::mutex mutex_;
  bool serving_ = false;
  bool ended_ = false;
  uint64_t version_ = 0;
  std::set<Watcher*> waiting_;
};

}  // namespace quantd::rpc

#endif  // QUANTD_SERVER_RPC_HEALTH_H_
