// A client for tests that sends exactly the given bytes, as slowly as the test wants.
#ifndef QUANTD_TESTS_SERVER_HTTP_PEER_H_
#define QUANTD_TESTS_SERVER_HTTP_PEER_H_

#include <string>

#include "absl/strings/string_view.h"
#include "server/net/unique_fd.h"

namespace quantd::http {

class Peer {
 public:
  // Connects to an address as HttpServer::address() gives it, IPv4 or [IPv6]. receive_bytes: the
  // size of its receive buffer, 0 for the system's. from: its own address 127.0.0.FROM, if not 0.
  explicit Peer(absl::string_view address, int receive_bytes = 0, int from = 0);

  bool connected() const { return connected_; }
  int descriptor() const { return socket_.get(); }
  // False when the server has closed the connection.
  bool Send(absl::string_view bytes) const;
  // Ends this side: the peer sends nothing more.
  void EndSending() const;
  // Reads until the server ends the connection; at most 20 s.
  std::string ReadToEnd() const;
  // Whether the server ends the connection within a time, whatever it sends before.
  bool EndsWithin(int milliseconds) const;

 private:
  UniqueFd socket_;
  bool connected_ = false;
};

// The response to these bytes, on a connection of their own.
std::string Ask(absl::string_view address, absl::string_view bytes);

}  // namespace quantd::http

#endif  // QUANTD_TESTS_SERVER_HTTP_PEER_H_
