// What the fuzzer of HTTP/2 has besides its inputs: a service with one method, and the peer
// that sends it an input through a socket.
#ifndef QUANTD_TESTS_FUZZ_HTTP2_PEER_H_
#define QUANTD_TESTS_FUZZ_HTTP2_PEER_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "server/memory/buffer.h"
#include "server/rpc/call.h"
#include "server/transport/transport_context.h"

namespace quantd::fuzz {

// A service with the method kPath (http2_input.h).
class OneMethod : public transport::CallHandler {
 public:
  int Find(absl::string_view path) const override;
  wire::CallStatus Refuse(const transport::ServerCall& stream, int method,
                          const absl::Status& status) const override;
  bool AnyoneWaits() const override { return true; }

  rpc::Calls calls;
  memory::Pool pool;
  uint64_t progress = 0;  // its calls increase it when they have seen something

 protected:
  ~OneMethod() = default;
};

struct Surroundings {
  transport::Limits limits;
  uint64_t receive_budget = 4 << 20;
  uint64_t window = 64 << 10;
  // Iterations of the loop without any event before the peer ends the connection.
  int quiet_iterations = 3;
};

// Sends `input` (http2_input.h) on a connection, ends it when nothing more happens, and returns
// when everything has ended. If calls, reserved memory or buffers are left then, it aborts.
void Converse(OneMethod& service, const Surroundings& surroundings, absl::string_view input);

}  // namespace quantd::fuzz

#endif  // QUANTD_TESTS_FUZZ_HTTP2_PEER_H_
