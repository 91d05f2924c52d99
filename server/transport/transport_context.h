// What all connections have in common: whom they serve, where their memory comes from, what is
// allowed, and what is counted.
#ifndef QUANTD_SERVER_TRANSPORT_TRANSPORT_CONTEXT_H_
#define QUANTD_SERVER_TRANSPORT_TRANSPORT_CONTEXT_H_

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/access/session.h"
#include "server/admission/receiving.h"
#include "server/errors/call_status.h"
#include "server/memory/buffer.h"
#include "server/transport/peer_table.h"

namespace quantd::transport {

class ServerCall;

// Who answers calls. From any loop's leader, several at a time.
class CallHandler {
 public:
  // The number of the method at "/package.Service/Method"; -1: there is none.
  virtual int Find(absl::string_view path) const = 0;
  // A call of a known method has come: starts answering it. The stream lives until its End.
  virtual void Begin(ServerCall& stream) = 0;
  // A call is refused before it starts, and counted: what the client gets to see. `method`: what
  // Find said.
  virtual errors::CallStatus Refuse(const ServerCall& stream, int method,
                                    const absl::Status& status) const = 0;
  // Whether calls of this method only wait for news: they have a table of their own.
  virtual bool Watches(int /*method*/) const { return false; }
  // The most bytes that a request of `method` may take, below Limits::max_message_bytes. Where
  // requests have no permit, as those of health and reflection, this is what keeps their memory
  // bounded.
  virtual uint64_t MostBytes(int /*method*/) const { return UINT64_MAX; }
  // Whether others wait for what a peer that does not read its responses holds.
  virtual bool AnyoneWaits() const = 0;
  // Whether calls keep this header of their requests, for Head::metadata.
  virtual bool Keeps(absl::string_view /*name*/) const { return false; }
  // Whether a call may be made by who says `authorization` (the header; may be empty). Of `method`:
  // what Find said.
  virtual absl::Status Authorize(int /*method*/, absl::string_view /*authorization*/) const {
    return absl::OkStatus();
  }

 protected:
  ~CallHandler() = default;
};

struct Limits {
  uint64_t max_message_bytes = 64 << 20;
  absl::string_view message_flag = "--max_message_bytes";  // which sets it
  // Calls at a time of one connection (HTTP/2's MAX_CONCURRENT_STREAMS), and of all. One more is
  // refused with UNAVAILABLE.
  uint32_t max_streams = 100;
  int64_t max_calls = 4096;
  // Calls that only wait for news (CallHandler::Watches), which are not among these.
  int64_t max_watches = 1024;
  int64_t max_connections = 1024;
  // Of what all connections cause and do not read. Over it, one that has much of it ends.
  int64_t max_backlog = 16 << 20;
  // A connection from which nothing has come for so long is asked whether it still lives, and
  // closed when it has not answered after a third of that.
  std::chrono::milliseconds keepalive{60'000};
  // After this age a connection takes no more calls, after the grace it is closed. 0: never.
  std::chrono::milliseconds max_connection_age{0};
  std::chrono::milliseconds max_connection_age_grace{30'000};
  // A client that has not answered a ping for so long, after it was told to make no more calls
  // here, is taken to know it. A busy one may still make calls that the server then never sees.
  std::chrono::milliseconds leave_timeout{5'000};
  // A response that does not move for so long is given up while others wait.
  std::chrono::milliseconds stall{5'000};
  // Nor one that moves by fewer bytes a second than that, over as long.
  uint64_t min_rate = 64 << 10;
  // A message waits for room no longer than that.
  std::chrono::milliseconds queue_timeout{30'000};
};

// Why a connection was not taken, or was ended by us.
enum class ConnectionEnd : uint8_t {
  kTooMany,        // --max_connections, or the descriptors are used up
  kNoHandshake,    // did not say that it speaks HTTP/2
  kProtocolError,  // broke HTTP/2's rules, floods of acknowledgements included
  kSilent,         // did not answer a ping
  kStalled,        // did not read while others waited
  kAge,            // --max_connection_age
  kTls,            // its TLS handshake came to nothing
  kUnread,         // did not read what its own frames had caused
  kHeaders,        // a header block far over the limit, or one that did not end
};
inline constexpr size_t kConnectionEnds = 9;

// What is done against a peer that takes more than its share.
enum class AbuseAction : uint8_t {
  kConnectionRefused,    // its own peer has as many as anybody
  kConnectionEvicted,    // for one of a peer with fewer
  kConnectionThrottled,  // was read no further for a while, for its many frames without use
  kCallEvicted,          // had sent nothing, for one of a connection with fewer
  kDescriptorsExhausted,
  kUploadStalled,  // stood still while others waited for its memory
  kAnswerStalled,  // was not read while others waited for its memory
};
inline constexpr size_t kGuards = 7;

// Relaxed: a reading is a little behind.
struct Counters {
  std::atomic<int64_t> connections{0};  // now
  std::atomic<uint64_t> accepted{0};
  std::array<std::atomic<uint64_t>, kConnectionEnds> ended{};
  std::array<std::atomic<uint64_t>, kGuards> guards{};
  std::atomic<int64_t> calls{0};  // now, but for
  std::atomic<int64_t> watches{0};
  std::atomic<int64_t> throttled_now{0};
  // Bytes of what connections have caused and do not take, and of what was read and waits for that.
  std::atomic<int64_t> backlog{0};
  std::array<std::atomic<uint64_t>, access::kRefusals> refused_handshakes{};

  void CountEnd(ConnectionEnd why) {
    ended[static_cast<size_t>(why)].fetch_add(1, std::memory_order_relaxed);
  }
  void CountAbuse(AbuseAction what) {
    guards[static_cast<size_t>(what)].fetch_add(1, std::memory_order_relaxed);
  }
  const std::atomic<uint64_t>& abuse(AbuseAction what) const {
    return guards[static_cast<size_t>(what)];
  }
};

struct TransportContext {
  CallHandler& handler;
  memory::Pool& pool;
  admission::Receiving& receiving;
  const Limits limits;
  // Of TCP connections; null: they are plain, as those of Unix sockets always are.
  const access::Certificates* certificates = nullptr;
  PeerTable peers{limits.max_connections};
  Counters counters = {};
  std::atomic<bool> draining{false};
};

}  // namespace quantd::transport

#endif  // QUANTD_SERVER_TRANSPORT_TRANSPORT_CONTEXT_H_
