// grpc.health.v1.Health: whether the server answers requests, for probes and for clients that
// balance load.
//
// Check is answered on threads of gRPC's own, so that work on the polling threads never delays it
// by more than its I/O. A Watch stream is a call like the others (server/rpc), because there is one
// for every client that watches, and a thread each would be too many. Watch streams are told
// NOT_SERVING and ended when the server drains; one that stayed open would hold the shutdown of the
// server until its deadline.
#ifndef QUANTD_SERVER_LIFECYCLE_HEALTH_H_
#define QUANTD_SERVER_LIFECYCLE_HEALTH_H_

#include <grpcpp/alarm.h>

#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "grpc/health/v1/health.grpc.pb.h"
#include "server/rpc/call.h"
#include "server/rpc/queue.h"

namespace quantd::lifecycle {

// Safe from any thread.
class Health final
    : public grpc::health::v1::Health::WithAsyncMethod_Watch<grpc::health::v1::Health::Service> {
 public:
  using Status = grpc::health::v1::HealthCheckResponse::ServingStatus;

  // Knows "" (the server) and these services. Not serving until told so.
  explicit Health(std::vector<std::string> services);

  // Tells every watcher.
  void SetServing(bool serving);
  bool serving() const;
  // Ends all Watch streams, those that are still to come as well.
  void EndWatches();

  grpc::Status Check(grpc::ServerContext* context,
                     const grpc::health::v1::HealthCheckRequest* request,
                     grpc::health::v1::HealthCheckResponse* response) override;

  // Answers one Watch stream after the other has come, each in a call of its own.
  static rpc::Call ServeWatch(rpc::Calls& calls, Health& health, rpc::Queue& queue);

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
  mutable std::mutex mutex_;
  bool serving_ = false;
  bool ended_ = false;
  uint64_t version_ = 0;
  std::set<grpc::Alarm*> alarms_;  // of the watchers
};

}  // namespace quantd::lifecycle

#endif  // QUANTD_SERVER_LIFECYCLE_HEALTH_H_
