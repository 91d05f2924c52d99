// The HTTP side: /metrics for Prometheus, /livez and /readyz for probes. A few threads of its own;
// nothing here touches a request.
#ifndef QUANTD_SERVER_LIFECYCLE_HTTP_H_
#define QUANTD_SERVER_LIFECYCLE_HTTP_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace quantd::lifecycle {

struct HttpPages {
  std::function<std::string()> metrics;  // Prometheus' text format
  std::function<bool()> ready;           // whether /readyz says 200 or 503
};

class HttpServer {
 public:
  // Listens on HOST:PORT (port 0 picks one) and serves at once. UNAVAILABLE, in one line, when the
  // address can't be had. The pages are called from several threads.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(absl::string_view address,
                                                           HttpPages pages);
  // Stops, after the answers that are being written.
  ~HttpServer();

  // The address that it listens on, with the port that was picked.
  const std::string& address() const { return address_; }

 private:
  struct State;
  explicit HttpServer(std::unique_ptr<State> state);

  std::string address_;
  std::unique_ptr<State> state_;
};

}  // namespace quantd::lifecycle

#endif  // QUANTD_SERVER_LIFECYCLE_HTTP_H_
