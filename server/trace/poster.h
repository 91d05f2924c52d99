// Sends bodies to one address by HTTP (libevent's client), and believes nothing that it answers:
// time, headers and body of an answer are bounded.
#ifndef QUANTD_SERVER_TRACE_POSTER_H_
#define QUANTD_SERVER_TRACE_POSTER_H_

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "server/trace/endpoint.h"
#include "server/trace/tls.h"

namespace quantd::trace {

// Where bodies go, and how.
struct Destination {
  Endpoint endpoint;
  TlsFiles tls;  // if the endpoint has TLS; read anew every minute, and after a failure
  std::vector<std::pair<std::string, std::string>> headers;  // beside those of the protocol
  bool gzip = false;
};

// From one thread, but for Interrupt.
class Poster {
 public:
  explicit Poster(Destination destination);
  ~Poster();

  // OK when the answer is 2xx; UNAVAILABLE when it may be otherwise the next time, which includes
  // no answer in `most`, a certificate that is not trusted and a file that can't be read; else
  // INVALID_ARGUMENT.
  absl::Status Post(const std::string& body, std::chrono::milliseconds most);
  // Ends the Post that is under way.
  void Interrupt();

 private:
  struct Parts;
  absl::StatusOr<Tls> TakeTls();

  const Destination destination_;
  std::unique_ptr<Parts> parts_;
};

}  // namespace quantd::trace

#endif  // QUANTD_SERVER_TRACE_POSTER_H_
