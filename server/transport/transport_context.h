// What all connections share: the handler of calls, the memory, the limits and the counters.
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
#include "server/memory/buffer.h"
#include "server/scheduling/places.h"
#include "server/wire/call_status.h"

namespace quantd::transport {

class ServerCall;

// What answers the calls of a server: rpc::Router (server/rpc/router.h). Called by the leaders of
// all loops, several at the same time.
class CallHandler {
 public:
  // The number of the method at "/package.Service/Method"; -1: unknown.
  virtual int Find(absl::string_view path) const = 0;
  // Starts answering a call of a known method. The stream lives until its End.
  virtual void Begin(ServerCall& stream) = 0;
  // Counts a call that is refused before it starts, and returns the status for the client.
  // `method`: the result of Find.
  virtual wire::CallStatus Refuse(const ServerCall& stream, int method,
                                  const absl::Status& status) const = 0;
  // Whether calls of this method only wait for news: they are counted separately.
  virtual bool Watches(int /*method*/) const { return false; }
  // The most bytes of a request of `method`, if less than Limits::max_message_bytes. For
  // methods whose requests have no permit, such as health and reflection, this bounds their
  // memory.
  virtual uint64_t MostBytes(int /*method*/) const { return UINT64_MAX; }
  // Whether other requests wait for memory that a peer holds by not reading its responses.
  virtual bool AnyoneWaits() const = 0;
  // Whether calls keep this request header, for Head::metadata.
  virtual bool Keeps(absl::string_view /*name*/) const { return false; }
  // Whether a caller with `authorization` (the header; may be empty) may make a call of `method`
  // (the result of Find).
  virtual absl::Status Authorize(int /*method*/, absl::string_view /*authorization*/) const {
    return absl::OkStatus();
  }

 protected:
  ~CallHandler() = default;
};

struct Limits {
  uint64_t max_message_bytes = 64 << 20;
  absl::string_view message_flag = "--max_message_bytes";  // the flag for it
  // The most calls at the same time: of one connection (HTTP/2's MAX_CONCURRENT_STREAMS), and of
  // all. One more is refused with UNAVAILABLE.
  uint32_t max_streams = 100;
  int64_t max_calls = 4096;
  // The most calls that only wait for news (CallHandler::Watches). They do not count as calls
  // above.
  int64_t max_watches = 1024;
  int64_t max_connections = 1024;
  // The most bytes that all connections cause and do not read. Above it, a connection with much of
  // it ends.
  int64_t max_backlog = 16 << 20;
  // A connection that has been silent for this long is pinged, and is closed if it has not answered
  // after a third of that time.
  std::chrono::milliseconds keepalive{60'000};
  // After this age a connection accepts no more calls; after the grace it is closed. 0: never.
  std::chrono::milliseconds max_connection_age{0};
  std::chrono::milliseconds max_connection_age_grace{30'000};
  // A client that was told to make no more calls here is expected to answer a ping within this
  // time; after it, the client is assumed to know. A busy client may then still make calls that the
  // server never sees.
  std::chrono::milliseconds leave_timeout{5'000};
  // A call without progress for this long loses its place in a full table (scheduling/places.h).
  std::chrono::milliseconds stall{5'000};
  // So does one that is slower than this number of bytes per second over the same time.
  uint64_t min_rate = 64 << 10;
  // The longest time that a message waits for room.
  std::chrono::milliseconds queue_timeout{30'000};
};

// Why the server refused or ended a connection.
enum class ConnectionEnd : uint8_t {
  kTooMany,        // --max_connections is reached, or no descriptors are left
  kNoHandshake,    // the peer did not begin with HTTP/2
  kProtocolError,  // a violation of HTTP/2, including floods of acknowledgements
  kSilent,         // the peer did not answer a ping
  kStalled,        // the peer did not read while others waited
  kAge,            // --max_connection_age
  kTls,            // the TLS handshake failed
  kUnread,         // the peer did not read what its own frames had caused
  kHeaders,        // a header block far over the limit, or one that did not end
};
inline constexpr size_t kConnectionEnds = 9;

// An action against a peer that takes more than its share.
enum class AbuseAction : uint8_t {
  kConnectionRefused,    // its peer has as many as any other
  kConnectionEvicted,    // closed for one of a peer with fewer
  kConnectionThrottled,  // not read for a while because of many useless frames
  kCallEvicted,          // stood still while others waited for its place
  kDescriptorsExhausted,
  kUploadStalled,  // no progress while others waited for its memory
  kAnswerStalled,  // not read while others waited for its memory
};
inline constexpr size_t kAbuseActions = 7;

// Relaxed: a reading may be slightly out of date.
struct Counters {
  std::atomic<uint64_t> accepted{0};
  std::array<std::atomic<uint64_t>, kConnectionEnds> ended{};
  std::array<std::atomic<uint64_t>, kAbuseActions> abuse_actions{};
  std::atomic<int64_t> throttled_now{0};
  std::array<std::atomic<uint64_t>, access::kRefusals> refused_handshakes{};

  void CountEnd(ConnectionEnd why) {
    ended[static_cast<size_t>(why)].fetch_add(1, std::memory_order_relaxed);
  }
  void CountAbuse(AbuseAction what) {
    abuse_actions[static_cast<size_t>(what)].fetch_add(1, std::memory_order_relaxed);
  }
  const std::atomic<uint64_t>& abuse(AbuseAction what) const {
    return abuse_actions[static_cast<size_t>(what)];
  }
};

struct TransportContext {
  CallHandler& handler;
  memory::Pool& pool;
  admission::Receiving& receiving;
  const Limits limits;
  // For TCP connections; null: plain text. Unix sockets are always plain text.
  const access::Certificates* certificates = nullptr;
  scheduling::PlaceTable connections{static_cast<uint64_t>(limits.max_connections), limits.stall,
                                     scheduling::PlaceTable::Otherwise::kOfAnyOther};
  // Bytes that connections have caused and do not read, and input that waits because of that.
  scheduling::PlaceTable backlog{static_cast<uint64_t>(limits.max_backlog), limits.stall};
  scheduling::PlaceTable calls{static_cast<uint64_t>(limits.max_calls), limits.stall};
  scheduling::PlaceTable watches{static_cast<uint64_t>(limits.max_watches), limits.stall};
  // Watches included.
  uint64_t open_calls() const { return calls.taken() + watches.taken(); }
  Counters counters = {};
  std::atomic<bool> draining{false};
};

// ---- Log lines about connections. Their rate is bounded, because peers cause them.

// A TLS handshake failed. `reason` is in our own words. Safe from any thread.
void NoteRefusedHandshake(absl::string_view reason, absl::string_view peer);

// The server has ended a connection. Safe from any thread.
void NoteConnectionEnd(ConnectionEnd why, absl::string_view peer);

// Logs and counts an action. `peer`: against whom; empty: unknown. Safe from any thread.
void NoteAbuse(Counters& counters, AbuseAction what, absl::string_view peer);

}  // namespace quantd::transport

#endif  // QUANTD_SERVER_TRANSPORT_TRANSPORT_CONTEXT_H_
