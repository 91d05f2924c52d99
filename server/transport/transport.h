// gRPC over HTTP/2: accepts connections, distributes them over the loops, and has a CallHandler
// answer their calls.
//
//   Transport transport(shared, loops);
//   absl::StatusOr<std::string> address = transport.Listen("127.0.0.1:0");
//   transport.Start();                   // accepts connections from now on
//   ...
//   transport.GoAway();                  // drain: tells every client
//   transport.WaitForConnections(deadline);
//   transport.Close();
#ifndef QUANTD_SERVER_TRANSPORT_TRANSPORT_H_
#define QUANTD_SERVER_TRANSPORT_TRANSPORT_H_

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/loop/loop.h"
#include "server/net/listen.h"
#include "server/transport/connection_set.h"
#include "server/transport/transport_context.h"

namespace quantd::transport {

// For one thread that leads no loop, unless noted otherwise.
class Transport {
 public:
  // REQUIRES: both outlive the transport.
  Transport(TransportContext& context, const std::vector<loop::Loop*>& loops);
  // REQUIRES: closed, and the loops have stopped.
  ~Transport();

  // Binds to `address`; see net/listen.h. Returns the address with the port that was picked.
  absl::StatusOr<std::string> Listen(absl::string_view address,
                                     mode_t socket_mode = net::kSocketMode);
  // Whether other machines can reach one of the addresses.
  bool beyond_loopback() const { return beyond_loopback_; }
  // Differences from what was asked for, one per line.
  const std::vector<std::string>& notes() const { return notes_; }
  // Starts accepting connections. REQUIRES: the loops are led.
  void Start();

  // Stops accepting connections, except those that wait already.
  void StopListening();
  // Tells every client to go elsewhere. Calls that it sent before it knew are answered.
  void GoAway();
  // Interrupts every call with `status`, which is sent to the client.
  void EndCalls(const absl::Status& status);
  // Waits until no connection is left: each closes when its calls are over. False: a timeout.
  bool WaitForConnections(std::chrono::steady_clock::time_point until);
  // Closes every connection, and cancels the remaining calls.
  void Close();

 private:
  class Acceptor;
  // The set for the next connection: that of the loop with the fewest.
  ConnectionSet& NextSet();
  // Runs a function on every loop, and waits until all have run it.
  void OnEveryLoop(absl::FunctionRef<void(ConnectionSet&)> function);
  void OnEveryAcceptor(void (Acceptor::*function)());

  TransportContext& context_;
  std::vector<std::unique_ptr<ConnectionSet>> sets_;
  std::vector<std::unique_ptr<Acceptor>> acceptors_;
  bool beyond_loopback_ = false;
  std::vector<std::string> notes_;
};

}  // namespace quantd::transport

#endif  // QUANTD_SERVER_TRANSPORT_TRANSPORT_H_
