// Sends bodies to one address by HTTP (libevent's client), and believes nothing that it answers:
// time, headers and body of an answer are bounded.
#ifndef QUANTD_SERVER_TRACE_POSTER_H_
#define QUANTD_SERVER_TRACE_POSTER_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace quantd::trace {

struct Endpoint {
  std::string host;
  uint16_t port = 4318;
  std::string path = "/v1/traces";
};

// http://HOST[:PORT][/PATH]; INVALID_ARGUMENT for everything else.
absl::StatusOr<Endpoint> ParseEndpoint(absl::string_view text);

// From one thread, but for Interrupt.
class Poster {
 public:
  explicit Poster(Endpoint endpoint);
  ~Poster();

  // OK when the answer is 2xx; UNAVAILABLE when it may be otherwise the next time, which includes
  // no answer in `most`; else INVALID_ARGUMENT.
  absl::Status Post(const std::string& body, std::chrono::milliseconds most);
  // Ends the Post that is under way.
  void Interrupt();

 private:
  struct Parts;
  const Endpoint endpoint_;
  std::unique_ptr<Parts> parts_;
};

}  // namespace quantd::trace

#endif  // QUANTD_SERVER_TRACE_POSTER_H_
