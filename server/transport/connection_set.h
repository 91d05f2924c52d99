// The connections of one loop, and the clock that looks at them.
#ifndef QUANTD_SERVER_TRANSPORT_CONNECTION_SET_H_
#define QUANTD_SERVER_TRANSPORT_CONNECTION_SET_H_

#include <atomic>
#include <cstddef>
#include <set>

#include "server/loop/loop.h"
#include "server/transport/handshakes.h"
#include "server/transport/inflater.h"
#include "server/transport/peer.h"
#include "server/transport/transport_context.h"

namespace quantd::transport {

class Connection;

// Only on the thread that leads loop(), but for size().
class ConnectionSet final : private loop::Timer {
 public:
  // `index`: its number among all sets.
  ConnectionSet(TransportContext& context, loop::Loop& loop, size_t index)
      : context_(context),
        loop_(loop),
        index_(index),
        handshakes_(loop),
        inflater_(loop, context.pool) {}
  // REQUIRES: empty.
  ~ConnectionSet() { loop_.timers().Clear(*this); }

  TransportContext& context() const { return context_; }
  loop::Loop& loop() const { return loop_; }
  Handshakes& handshakes() { return handshakes_; }
  Inflater& inflater() { return inflater_; }
  size_t index() const { return index_; }
  // From any thread; counts those that are on their way here, too (Expect).
  size_t size() const { return size_.load(std::memory_order_relaxed); }
  void Expect() { size_.fetch_add(1, std::memory_order_relaxed); }

  void Add(Connection& connection);
  void Remove(Connection& connection);
  // What was expected does not come.
  void Missed(const Peer& peer);

  // Has every connection say that it takes no more calls.
  void GoAway();
  // Interrupts all of their calls.
  void EndCalls(const absl::Status& status);
  // Closes them all.
  void Close();
  // Ends a call for one of `newcomer`: one that waits for its request, of the connection that has
  // the most of these here. False: that has no more than the newcomer's.
  bool MakeRoomFor(const Connection& newcomer);
  // Closes one of this peer's: of those with the fewest calls the one that has been quiet for
  // longest; only one without calls if `idle_only`.
  void Evict(uint64_t peer, bool idle_only);

 private:
  void Fire() override;

  TransportContext& context_;
  loop::Loop& loop_;
  const size_t index_;
  Handshakes handshakes_;
  Inflater inflater_;
  std::set<Connection*> connections_;
  std::atomic<size_t> size_{0};
};

}  // namespace quantd::transport

#endif  // QUANTD_SERVER_TRANSPORT_CONNECTION_SET_H_
