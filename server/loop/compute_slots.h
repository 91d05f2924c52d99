// Who computes: at most as many threads as there are cores, whatever is asked of how many
// connections. A computation that finds no core waits for its turn (fair_queue.h); the thread that
// ends one takes the next. Without this cap short calls wait behind whatever the scheduler of the
// machine runs: their p99 beside heavy ones is 500 times that on a server of their own, with it
// about the same.
//
// Short work does not ask: it is computed by the thread that read it.
#ifndef QUANTD_SERVER_LOOP_COMPUTE_SLOTS_H_
#define QUANTD_SERVER_LOOP_COMPUTE_SLOTS_H_

#include <atomic>
#include <cstdint>
#include <mutex>

#include "server/loop/event.h"
#include "server/loop/fair_queue.h"
#include "server/loop/loop.h"

namespace quantd::loop {

// Safe from any thread.
class ComputeSlots {
 public:
  // A computation that waits for a core. Stays where it is until it has one or is taken back.
  class Waiting : public FairQueue::Entry {
   private:
    friend class ComputeSlots;
    Event* granted_ = nullptr;
    Loop* loop_ = nullptr;
  };

  explicit ComputeSlots(int cores) : cores_(cores), free_(cores) {}

  // Takes a core. False: none is free; `granted` will complete, with true once it has one (on the
  // thread that shall compute), with false when Cancel came first (on `loop`).
  bool Take(Waiting& waiting, uint64_t peer, uint64_t cost, Loop& loop, Event& granted);
  // Takes a request back. False, and nothing happens, when it has its core already or never waited.
  bool Cancel(Waiting& waiting);
  // Takes up to `wanted` further cores that nobody else waits for, for a computation that holds one
  // and can be split. Returns how many.
  int TakeIdle(int wanted);
  // Gives `count` of them back. The next one in the queue runs when this thread has finished what
  // it does, or on its loop.
  void Give(int count);

  // For ThreadPool: this thread will call RunWaiting when it has nothing else to do, which runs the
  // computation that Give left for it, and what comes after that.
  static void ServeHere();
  static void RunWaiting();

  int total() const { return cores_; }
  int busy() const;
  int64_t waiting() const;

 private:
  const int cores_;
  mutable std::mutex mutex_;
  int free_;
  FairQueue queue_{true};
};

}  // namespace quantd::loop

#endif  // QUANTD_SERVER_LOOP_COMPUTE_SLOTS_H_
