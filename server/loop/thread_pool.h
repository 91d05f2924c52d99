// The threads: one leads each loop, the others are parked until one is needed.
//
// A thread that is about to compute for long gives its lead to a parked one and goes on where it
// is, with the request still in its cache; when it is done it takes the next computation that waits
// for a core, and parks when there is none. Parked threads are woken last in, first out, each by a
// word of its own.
#ifndef QUANTD_SERVER_LOOP_THREAD_POOL_H_
#define QUANTD_SERVER_LOOP_THREAD_POOL_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "server/loop/loop.h"

namespace quantd::loop {

class ThreadPool {
 public:
  // Starts as many threads as there are loops, each leading one, and `spare` parked ones.
  // REQUIRES: the loops outlive it.
  ThreadPool(const std::vector<Loop*>& loops, int spare);
  // Stops the loops and joins the threads. REQUIRES: no call lives.
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // Gives the loop that this thread leads to a parked thread. False, and nothing has happened, when
  // it leads none or none is parked. Afterwards whatever belongs to the loop is another thread's.
  bool HandOver();

  int threads() const { return static_cast<int>(threads_.size()); }
  // Threads that neither lead nor are parked.
  int computing() const { return computing_.load(std::memory_order_relaxed); }

 private:
  struct Thread {
    std::thread thread;
    std::atomic<uint32_t> wakeups{0};
    Loop* loop = nullptr;  // to lead; null: to end
  };
  void Main(Thread& self, Loop* loop);
  // The loop to lead next; nullptr: end.
  Loop* Park(Thread& self);
  // Until it has been woken once more than so often.
  static Loop* Await(const Thread& self, uint32_t wakeups);
  static void Wake(Thread& thread, Loop* loop);

  const std::vector<Loop*> loops_;
  std::vector<std::unique_ptr<Thread>> threads_;
  std::atomic<int> computing_{0};
  std::mutex mutex_;
  std::vector<Thread*> parked_;
  bool ending_ = false;
};

}  // namespace quantd::loop

#endif  // QUANTD_SERVER_LOOP_THREAD_POOL_H_
