// The running server: its components, each after those that it uses.
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

// Adds the routes of further services (services/exchange.h). Their calls count in Calls and use the
// Pool's memory; the router, the calls and the pool outlive every call.
using AddServices = std::function<void(rpc::Router&, rpc::Calls&, memory::Pool&)>;

class Server {
 public:
  // Returns once the server serves. UNAVAILABLE, in one line: an address or threads are not
  // available. INVALID_ARGUMENT: the instruction set is unknown, or a file of certificates or
  // tokens can't be used.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const Options& options,
                                                       const AddServices& add_services = {});
  // What Start would return for the instruction set, the files and the directories of the options.
  static absl::Status Check(const Options& options);
  // REQUIRES: Drain has been called, and has returned true.
  ~Server();

  // All bound addresses, of gRPC and of HTTP ("" if it is off).
  const std::vector<std::string>& grpc_addresses() const;
  std::string http_address() const;
  // Differences from what the options ask for, one per line: no IPv6 for [::], for example.
  std::vector<std::string> notes() const;
  // The instruction set of the kernels.
  std::string target() const;
  // What /livez reports: whether the event loops still run. Does not block.
  bool Alive() const;

  // Makes the server reload certificates and tokens soon; the log says whether that succeeded.
  void Reload();

  // Shuts down in stages, so that no call is lost; see deploy/OPERATIONS.md, "Restarts". At once
  // /readyz returns 503, so that load balancers send clients elsewhere. After half of `lame_duck`
  // the health service reports NOT_SERVING, so that clients that check it leave, too. After all of
  // it the other clients are told (GOAWAY), new connections are refused, and calls in progress
  // finish. Calls that remain at the end of the drain time end with UNAVAILABLE. Call once. False:
  // a volume has not answered, and the thread that waits for it
  // still uses the server: the process must end without destroying it.
  bool Drain(absl::Duration lame_duck);

 private:
  struct Components;
  Server(std::unique_ptr<TlsAndTokens> tls_and_tokens, std::unique_ptr<Components> components);

  std::unique_ptr<TlsAndTokens> tls_and_tokens_;
  std::unique_ptr<Components> components_;
};

}  // namespace quantd::server

#endif  // QUANTD_SERVER_SERVER_H_
