// Sends bodies to one address by HTTP (libevent's client), and believes nothing that it answers:
// time, headers and body of a response are bounded.
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

// What the system's resolver says, up to 8 of them. Blocks.
std::vector<std::string> AddressesOf(const std::string& host);

// Where bodies go, and how.
struct Destination {
  Endpoint endpoint;
  TlsFiles tls;  // if the endpoint has TLS; read anew every minute, and after a failure
  std::vector<std::pair<std::string, std::string>> headers;  // beside those of the protocol
  bool gzip = false;
  // The addresses of a host, as numbers, the one to try first in front; for tests.
  std::vector<std::string> (*addresses_of)(const std::string& host) = AddressesOf;
};

// From one thread, but for Interrupt.
class Poster {
 public:
  explicit Poster(Destination destination);
  ~Poster();

  // Tries the host's addresses one after another until one of them answers. OK when the response
  // is 2xx; UNAVAILABLE when it may be otherwise the next time, which includes no response in
  // `most`, a certificate that is not trusted and a file that can't be read; else INVALID_ARGUMENT.
  absl::Status Post(const std::string& body, std::chrono::milliseconds most);
  // Ends the Post that is under way.
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
