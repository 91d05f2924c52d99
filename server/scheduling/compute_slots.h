// Limits the threads that compute to the number of cores, however many connections ask. A
// computation that gets no core waits for its turn (fair_queue.h); a thread that ends one takes the
// next. Without this limit short calls wait behind whatever the machine's scheduler runs: beside
// heavy calls their p99 is 500 times that on a server of their own. With the limit it is about the
// same.
//
// A turn ends: a computation that has had its core for kTurn gives it to the next one that waits,
// and continues when it is its peer's turn again. Meanwhile its thread stands, with its stack. So
// there is a limit to how many stand; beyond it only short computations get such a core.
//
// Short work does not take a slot: the thread that read the request computes it. If it turns out to
// be long, it hands over its lead and joins the others.
#ifndef QUANTD_SERVER_SCHEDULING_COMPUTE_SLOTS_H_
#define QUANTD_SERVER_SCHEDULING_COMPUTE_SLOTS_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "server/loop/event.h"
#include "server/loop/loop.h"
#include "server/scheduling/fair_queue.h"

namespace quantd::scheduling {

// Thread-safe.
class ComputeSlots {
 public:
  // A computation that waits for a core. It must not move until it has a core or is cancelled.
  class Waiting : public FairQueue::Entry {
   private:
    friend class ComputeSlots;
    loop::Event* granted_ = nullptr;  // null: it has begun, and its thread stands
    loop::Loop* loop_ = nullptr;
    std::condition_variable continues_;
  };

  // How long a computation may keep its core while others wait for one. Most tensors take less.
  static constexpr std::chrono::milliseconds kTurn{10};
  // The most computations that stand.
  static constexpr int kMostStanding = 16;

  explicit ComputeSlots(int cores) : cores_(cores), free_(cores) {}

  // Takes a core. False: none is free. `granted` then completes with true once there is a core, on
  // the thread that is to compute, or with false, on `loop`, if Cancel came first.
  bool Take(Waiting& waiting, uint64_t peer, uint64_t cost, loop::Loop& loop, loop::Event& granted);
  // Cancels a request. Returns false and does nothing if it has a core already or never waited.
  bool Cancel(Waiting& waiting);
  // Takes up to `wanted` additional cores that no other computation waits for, for a computation
  // that has one and can be split. Returns how many it took.
  int TakeIdle(int wanted);
  // Returns `count` cores. The next computations in the queue run on their loops; if this thread's
  // work is over (`ends`), it runs the first of them itself.
  void Give(int count, bool ends = true);

  // A computation's turn. Its threads, each of which has a core, share it.
  struct Turn {
    std::atomic<loop::Clock::time_point> since;  // set when it begins
    std::atomic<loop::Clock::duration> stood;    // summed over all threads
  };
  // Called between pieces of work: ends the turn if it has been long and others wait, and returns
  // when the computation has a core again. Cheap if nobody waits. `peer`, `cost`: as for Take.
  void LetOthers(Turn& turn, uint64_t peer, uint64_t cost);
  // Takes a core, or waits for one, on a thread that has begun without.
  void Join(Turn& turn, uint64_t peer, uint64_t cost);

  // For ThreadPool: declares that this thread calls RunWaiting when it is idle. RunWaiting runs the
  // computation that Give left for this thread, and those after it.
  static void ServeHere();
  static void RunWaiting();

  int total() const { return cores_; }
  int busy() const;
  // Without those that have begun.
  int64_t waiting() const;

 private:
  // These require that mutex_ is held.
  void Grant(bool here);
  void Stand(std::unique_lock<std::mutex>& lock, Turn& turn, uint64_t peer, uint64_t cost);

  const int cores_;
  mutable std::mutex mutex_;
  int free_;
  int standing_ = 0;
  FairQueue queue_{std::chrono::nanoseconds(kTurn).count()};
  std::atomic<bool> anyone_waits_{false};
};

}  // namespace quantd::scheduling

#endif  // QUANTD_SERVER_SCHEDULING_COMPUTE_SLOTS_H_
