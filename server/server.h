// The running server: every component, in the order in which one needs the other.
#ifndef QUANTD_SERVER_SERVER_H_
#define QUANTD_SERVER_SERVER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/options/options.h"

namespace quantd::server {

class Server {
 public:
  // Serves when it returns. UNAVAILABLE, in one line, when an address or threads can't be had;
  // INVALID_ARGUMENT when the instruction set is unknown.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const Options& options);
  // REQUIRES: Drain has been called.
  ~Server();

  // Every bound address: of gRPC, and of HTTP ("" when there is none).
  const std::vector<std::string>& grpc_addresses() const;
  std::string http_address() const;
  // The instruction set of the kernels.
  std::string target() const;
  // What /livez says: whether the port still answers. Does not block.
  bool Alive() const;

  // Says NOT_SERVING, goes on for `lame_duck`, takes no more calls, lets those in flight finish (at
  // the end of the drain time they are cancelled), and stops everything. Call once.
  void Drain(absl::Duration lame_duck);

 private:
  struct Components;
  explicit Server(std::unique_ptr<Components> components);

  std::unique_ptr<Components> components_;
};

}  // namespace quantd::server

#endif  // QUANTD_SERVER_SERVER_H_
