// The connections of one loop, and the timer that checks them.
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

// Used only on the thread that leads loop(), except for size().
class ConnectionSet final : private loop::Timer {
 public:
  // `index`: the number of this set among all sets.
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
  // Safe from any thread. Includes connections that are about to be added (Expect).
  size_t size() const { return size_.load(std::memory_order_relaxed); }
  void Expect() { size_.fetch_add(1, std::memory_order_relaxed); }

  void Add(Connection& connection);
  void Remove(Connection& connection);
  // An expected connection will not come.
  void Missed(const Peer& peer);

  // Makes every connection tell its client to make no more calls.
  void GoAway();
  // Interrupts all calls of the connections.
  void EndCalls(const absl::Status& status);
  // Closes all connections.
  void Close();
  // Closes a connection of this peer: of those with the fewest calls, the one that has been quiet
  // for longest. `idle_only`: only one without calls.
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
