// The HTTP port: /metrics for Prometheus, /livez and /readyz for probes, / and /status.json for
// people. It is built for hostile peers: see HttpLimits. GET and HEAD, one request per connection,
// one thread. It has no part in gRPC requests.
//
//   auto http = HttpServer::Start("127.0.0.1:9464", {.metrics = ..., .live = ..., .ready = ...});
#ifndef QUANTD_SERVER_HTTP_HTTP_H_
#define QUANTD_SERVER_HTTP_HTTP_H_

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/access/certificates.h"
#include "server/access/tokens.h"

namespace quantd::http {

// Make the pages. They are called on the server's only thread and must be fast, because no other
// request is answered meanwhile. They must not throw.
struct HttpPages {
  std::function<std::string()> metrics;  // /metrics: Prometheus' text format
  std::function<bool()> live;            // /livez: 200 or 503
  std::function<bool()> ready;           // /readyz: 200 or 503
  // The status page at /, its Content-Security-Policy, and /status.json; null: none.
  std::function<std::string()> status_page = {};
  std::string status_policy = {};
  std::function<std::string()> status_json = {};
};

// Who may read what. Each pointer may be null; the objects must outlive the server. /livez and
// /readyz are open to everybody, because a probe has neither a certificate nor a token; the other
// pages are not.
struct HttpAccess {
  // If set, the port speaks TLS; a client certificate is needed if there is a client_ca.
  const access::Certificates* certificates = nullptr;
  // If set, one of these tokens is needed: as a Bearer, or, for browsers, as the password of any
  // user.
  const access::Tokens* tokens = nullptr;
};

// Limits on what peers may use. The memory is about connections x request_bytes + response_bytes,
// plus the pages made in one iteration of the loop, a hundred at most.
struct HttpLimits {
  // Open connections. One more closes the oldest, which has had the most time, so that a probe
  // always gets in. Never more than a quarter of the process's file descriptors.
  size_t connections = 256;
  // Of the request line and the headers together. Requests have no body.
  size_t request_bytes = 16 << 10;
  // From the accept to the last byte of the request, however slowly the bytes arrive.
  std::chrono::milliseconds request_time{2000};
  // From then until the peer has read the response.
  std::chrono::milliseconds response_time{5000};
  // Of all responses that wait for their peers. Beyond that, the oldest is dropped unless it is the
  // only one.
  size_t response_bytes = 4 << 20;
};

// Thread-safe.
class HttpServer {
 public:
  // Listens on HOST:PORT and serves at once. HOST is an IPv4 address, [an IPv6 address] ([::]
  // accepts IPv4 as well) or a name, for which the first address of this machine is used. Port
  // 0 picks a free port. INVALID_ARGUMENT: that is not an address. UNAVAILABLE, in one line
  // with the reason: the port is not available. REQUIRES: every page is set.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(absl::string_view address,
                                                           HttpPages pages,
                                                           const HttpLimits& limits = {},
                                                           const HttpAccess& access = {});
  // Stops at once. Waits for a page that is being made, but not for peers.
  ~HttpServer();

  // HOST as given, and the port that it listens on.
  const std::string& address() const { return address_; }
  // See net::Listening.
  const std::string& note() const { return note_; }

 private:
  class Thread;
  HttpServer(std::string address, std::string note, std::unique_ptr<Thread> thread);

  const std::string address_, note_;
  const std::unique_ptr<Thread> thread_;
};

}  // namespace quantd::http

#endif  // QUANTD_SERVER_HTTP_HTTP_H_
