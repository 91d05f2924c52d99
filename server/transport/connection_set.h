// The connections of one loop, and the timer that checks them.
#ifndef QUANTD_SERVER_TRANSPORT_CONNECTION_SET_H_
#define QUANTD_SERVER_TRANSPORT_CONNECTION_SET_H_

#include <atomic>
#include <cstddef>
#include <set>

#include "server/loop/loop.h"
#include "server/transport/handshakes.h"
#include "server/transport/inflater.h"
#include "server/transport/transport_context.h"

namespace quantd::transport {

class Connection;

// Used only on the thread that leads loop(), unless noted otherwise.
class ConnectionSet final : private loop::Timer {
 public:
  ConnectionSet(TransportContext& context, loop::Loop& loop)
      : context_(context), loop_(loop), handshakes_(loop), inflater_(loop, context.pool) {}
  // REQUIRES: empty.
  ~ConnectionSet() { loop_.timers().Clear(*this); }

  TransportContext& context() const { return context_; }
  loop::Loop& loop() const { return loop_; }
  Handshakes& handshakes() { return handshakes_; }
  Inflater& inflater() { return inflater_; }
  // The following are safe from any thread. The size includes connections that are about to be
  // added (Expect), unless they will not come (Missed).
  size_t size() const { return size_.load(std::memory_order_relaxed); }
  void Expect() { size_.fetch_add(1, std::memory_order_relaxed); }
  void Missed() { size_.fetch_sub(1, std::memory_order_relaxed); }

  void Add(Connection& connection);
  void Remove(Connection& connection);

  // Makes every connection tell its client to make no more calls.
  void GoAway();
  // Interrupts all calls of the connections.
  void EndCalls(const absl::Status& status);
  // Closes all connections.
  void Close();

 private:
  void Fire() override;

  TransportContext& context_;
  loop::Loop& loop_;
  Handshakes handshakes_;
  Inflater inflater_;
  std::set<Connection*> connections_;
  std::atomic<size_t> size_{0};
};

}  // namespace quantd::transport

#endif  // QUANTD_SERVER_TRANSPORT_CONNECTION_SET_H_
