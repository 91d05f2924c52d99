// Limits the threads that compute to the number of cores, however many connections ask. A
// computation that gets no core waits for its turn (fair_queue.h); a thread that ends one takes the
// next. Without this limit short calls wait behind whatever the machine's scheduler runs: beside
// heavy calls their p99 is 500 times that on a server of their own. With the limit it is about the
// same.
//
// Short work does not take a slot: the thread that read the request computes it.
#ifndef QUANTD_SERVER_SCHEDULING_COMPUTE_SLOTS_H_
#define QUANTD_SERVER_SCHEDULING_COMPUTE_SLOTS_H_

#include <atomic>
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
    loop::Event* granted_ = nullptr;
    loop::Loop* loop_ = nullptr;
  };

  explicit ComputeSlots(int cores) : cores_(cores), free_(cores) {}

  // Takes a core. False: none is free. `granted` then completes with true once there is a core, on
  // the thread that is to compute, or with false, on `loop`, if Cancel came first.
  bool Take(Waiting& waiting, uint64_t peer, uint64_t cost, loop::Loop& loop, loop::Event& granted);
  // Cancels a request. Returns false and does nothing if it has a core already or never waited.
  bool Cancel(Waiting& waiting);
  // Takes up to `wanted` additional cores that no other computation waits for, for a computation
  // that has one and can be split. Returns how many it took.
  int TakeIdle(int wanted);
  // Returns `count` cores. The next computation in the queue runs when this thread has finished its
  // work, or on its own loop.
  void Give(int count);

  // For ThreadPool: declares that this thread calls RunWaiting when it is idle. RunWaiting runs the
  // computation that Give left for this thread, and those after it.
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

}  // namespace quantd::scheduling

#endif  // QUANTD_SERVER_SCHEDULING_COMPUTE_SLOTS_H_
