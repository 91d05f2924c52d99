// The running server: every component, in the order in which one needs the other.
#ifndef QUANTD_SERVER_SERVER_H_
#define QUANTD_SERVER_SERVER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/options/options.h"

namespace quantd::memory {
class Pool;
}  // namespace quantd::memory
namespace quantd::rpc {
class Calls;
class Router;
}  // namespace quantd::rpc

namespace quantd::server {

class TlsAndTokens;

// Adds the routes of services beside our own (services/exchange.h). Calls count in the one, and
// have their memory from the other; all three outlive every call.
using AddServices = std::function<void(rpc::Router&, rpc::Calls&, memory::Pool&)>;

class Server {
 public:
  // Serves when it returns. UNAVAILABLE, in one line, when an address or threads can't be had;
  // INVALID_ARGUMENT when the instruction set is unknown, or a file of certificates or tokens can't
  // be used.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const Options& options,
                                                       const AddServices& add_services = {});
  // REQUIRES: Drain has been called, and has returned true.
  ~Server();

  // Every bound address: of gRPC, and of HTTP ("" when there is none).
  const std::vector<std::string>& grpc_addresses() const;
  std::string http_address() const;
  // What is not as the options ask for, a line each: no IPv6 where [::] is listened on.
  std::vector<std::string> notes() const;
  // The instruction set of the kernels.
  std::string target() const;
  // What /livez says: whether the port still answers. Does not block.
  bool Alive() const;

  // Has certificates and tokens read again, soon; says in the log how that went.
  void Reload();

  // Shuts down in stages, so that no call is lost; see deploy/OPERATIONS.md, "Restarts". At once
  // /readyz returns 503, so that load balancers send clients elsewhere; after half of `lame_duck`
  // the health service reports NOT_SERVING, so that clients that check it leave, too; after all of
  // it the others are told (GOAWAY), new connections are refused, and calls in progress finish.
  // Calls that are left at the end of the drain time end with UNAVAILABLE. Call once. False: the
  // volume of --parameters_dir has not answered until then, and the thread that waits for it still
  // uses what the server is made of: the process ends without destroying it.
  bool Drain(absl::Duration lame_duck);

 private:
  struct Components;
  Server(std::unique_ptr<TlsAndTokens> tls_and_tokens, std::unique_ptr<Components> components);

  std::unique_ptr<TlsAndTokens> tls_and_tokens_;
  std::unique_ptr<Components> components_;
};

}  // namespace quantd::server

#endif  // QUANTD_SERVER_SERVER_H_
