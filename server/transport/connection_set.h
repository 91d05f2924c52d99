// The connections of one loop, and the timer that checks them.
#ifndef QUANTD_SERVER_TRANSPORT_CONNECTION_SET_H_
#define QUANTD_SERVER_TRANSPORT_CONNECTION_SET_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>

#include "server/loop/loop.h"
#include "server/scheduling/fair_queue.h"
#include "server/transport/inflater.h"
#include "server/transport/transport_context.h"

namespace quantd::transport {

class Connection;

// Schedules TLS handshakes. Signing a hello takes up to milliseconds, for a peer that has paid
// nothing yet. So a loop makes one step per iteration, between the calls of all peers, and a round
// robin chooses the peer: one that opens thousands of connections waits behind itself.
//
// Belongs to one loop; used only on the thread that leads it.
class Handshakes final : private loop::Posted {
 public:
  class Waiting : public scheduling::FairQueue::Entry {
   public:
    // Makes one step. The connection is no longer in the queue.
    virtual void OnStep() = 0;

   protected:
    ~Waiting() = default;
  };

  explicit Handshakes(loop::Loop& loop) : loop_(loop) {}

  // REQUIRES: `waiting` is not in the queue.
  void Push(Waiting& waiting, uint64_t peer) {
    queue_.Push(waiting, peer, 1);
    if (!std::exchange(posted_, true)) loop_.AtIterationEnd(*this);
  }
  // Removes `waiting` if it is in the queue.
  void Drop(Waiting& waiting) {
    if (waiting.queued()) queue_.Remove(waiting, false);
  }

 private:
  void Run() override {
    posted_ = false;
    auto* const next = static_cast<Waiting*>(queue_.First());
    if (next == nullptr) return;
    queue_.Remove(*next, true);
    if (!queue_.empty() && !std::exchange(posted_, true)) loop_.AtIterationEnd(*this);
    next->OnStep();
  }

  loop::Loop& loop_;
  scheduling::FairQueue queue_;
  bool posted_ = false;
};

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
