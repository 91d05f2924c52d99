// grpc.channelz.v1.Channelz, as far as a server without channels has something to say.
#ifndef QUANTD_SERVER_SERVICES_CHANNELZ_H_
#define QUANTD_SERVER_SERVICES_CHANNELZ_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "grpc/channelz/v1/channelz.pb.h"
#include "server/memory/buffer.h"
#include "server/metrics/metrics.h"
#include "server/transport/stream.h"

namespace quantd::services {

// Safe from any thread. Outlives every call.
class Channelz {
 public:
  Channelz(metrics::Metrics& metrics, memory::Pool& pool) : metrics_(metrics), pool_(pool) {}

  // Where the server listens. Before the first call.
  void SetAddresses(std::vector<std::string> addresses) { addresses_ = std::move(addresses); }

  absl::StatusOr<memory::Piece> GetTopChannels(const transport::Message& request) const;
  absl::StatusOr<memory::Piece> GetServers(const transport::Message& request) const;
  absl::StatusOr<memory::Piece> GetServer(const transport::Message& request) const;

 private:
  grpc::channelz::v1::Server Server() const;

  metrics::Metrics& metrics_;
  memory::Pool& pool_;
  std::vector<std::string> addresses_;
};

}  // namespace quantd::services

#endif  // QUANTD_SERVER_SERVICES_CHANNELZ_H_
