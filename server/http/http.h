// The HTTP side: /metrics for Prometheus, /livez and /readyz for probes, made for peers that mean
// harm: see HttpLimits. GET and HEAD, one request a connection, one thread; nothing here touches a
// request of gRPC.
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

// What the pages say. Called on the server's only thread, so while one of them works nobody else is
// answered: they must be fast. They must not throw.
struct HttpPages {
  std::function<std::string()> metrics;           // /metrics: Prometheus' text format
  std::function<bool()> live;                     // /livez: 200 or 503
  std::function<bool()> ready;                    // /readyz: 200 or 503
  std::function<std::string()> openmetrics = {};  // for who accepts OpenMetrics; null: nobody
};

// Who may ask for what. All of it may be null, and outlives the server. /livez and /readyz are
// everybody's: a probe has neither certificate nor token.
struct HttpAccess {
  // With them the port speaks TLS; /metrics wants a client's certificate if there is a client_ca.
  const access::Certificates* certificates = nullptr;
  const access::Tokens* tokens = nullptr;  // /metrics wants one of them
};

// What peers may take. Memory: about connections x request_bytes + response_bytes, and the pages
// that are made in one iteration of the loop, a hundred at most.
struct HttpLimits {
  // Connections at a time; one more closes the oldest, which had the most time of all, so a probe
  // always gets in. Never more than a quarter of the process' file descriptors.
  size_t connections = 256;
  // Of the request line and the headers together. There are no bodies.
  size_t request_bytes = 16 << 10;
  // From the accept to the last byte of the request, however it drips.
  std::chrono::milliseconds request_time{2000};
  // From there until the peer has taken the response.
  std::chrono::milliseconds response_time{5000};
  // Of the responses, all together, that are waiting for their peers. Beyond that the oldest goes,
  // unless it is the only one.
  size_t response_bytes = 4 << 20;
};

// Safe from any thread.
class HttpServer {
 public:
  // Listens on HOST:PORT and serves at once. HOST is an IPv4 address, [an IPv6 address] ([::] takes
  // IPv4 as well) or a name, of which the first address that this machine has is taken; port 0
  // picks one. INVALID_ARGUMENT when that is no address, UNAVAILABLE, in one line with the reason,
  // when it can't be had. REQUIRES: all pages are set
  // that may not be null.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(absl::string_view address,
                                                           HttpPages pages,
                                                           const HttpLimits& limits = {},
                                                           const HttpAccess& access = {});
  // Stops at once: waits for a page that is being made, for no peer.
  ~HttpServer();

  // HOST as it was given, and the port that it listens on.
  const std::string& address() const { return address_; }
  // Of net::Listening.
  const std::string& note() const { return note_; }

 private:
  class Thread;
  HttpServer(std::string address, std::string note, std::unique_ptr<Thread> thread);

  const std::string address_, note_;
  const std::unique_ptr<Thread> thread_;
};

}  // namespace quantd::http

#endif  // QUANTD_SERVER_HTTP_HTTP_H_
