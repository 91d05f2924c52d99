// Sends HTTP POST requests to one address with libevent's client. It does not trust the other side:
// the time, the headers and the body of a response are limited.
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

// Up to 8 addresses from the system's resolver. Blocks.
std::vector<std::string> AddressesOf(const std::string& host);

// Where bodies are sent, and how.
struct Destination {
  Endpoint endpoint;
  TlsFiles tls;  // if the endpoint uses TLS; read again every minute, and after a failure
  std::vector<std::pair<std::string, std::string>> headers;  // in addition to the protocol's
  bool gzip = false;
  // Returns a host's numeric addresses, the one to try first in front; replaced in tests.
  std::vector<std::string> (*addresses_of)(const std::string& host) = AddressesOf;
};

// For one thread, except for Interrupt.
class Poster {
 public:
  explicit Poster(Destination destination);
  ~Poster();

  // Tries the host's addresses one after another until one answers. OK: the response is 2xx.
  // UNAVAILABLE: a later attempt may succeed; this includes no response within `most`, an untrusted
  // certificate and an unreadable file. INVALID_ARGUMENT: anything else.
  absl::Status Post(const std::string& body, std::chrono::milliseconds most);
  // Ends the Post in progress.
  void Interrupt();

 private:
  struct Parts;
  absl::StatusOr<Tls> TakeTls();
  absl::Status PostTo(const std::string& address, const std::string& packed,
                      std::chrono::milliseconds most, bool& goes_on);

  const Destination destination_;
  std::unique_ptr<Parts> parts_;
};

}  // namespace quantd::trace

#endif  // QUANTD_SERVER_TRACE_POSTER_H_
