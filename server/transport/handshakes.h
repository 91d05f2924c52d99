// Schedules TLS handshakes. Signing a hello takes up to milliseconds, for a peer that has paid
// nothing yet. So a loop makes one step per iteration, between the calls of all peers, and a round
// robin chooses the peer: one that opens thousands of connections waits behind itself.
#ifndef QUANTD_SERVER_TRANSPORT_HANDSHAKES_H_
#define QUANTD_SERVER_TRANSPORT_HANDSHAKES_H_

#include <cstdint>
#include <utility>

#include "server/loop/loop.h"
#include "server/scheduling/fair_queue.h"

namespace quantd::transport {

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

}  // namespace quantd::transport

#endif  // QUANTD_SERVER_TRANSPORT_HANDSHAKES_H_
