// The threads: one leads each loop; the others are parked until they are needed.
//
// A thread that is about to compute for long hands its lead to a parked thread and continues where
// it is, with the request still in its cache. When it is done, it takes the next computation that
// waits for a core, or parks if there is none. Parked threads are woken last in, first out, each by
// an atomic word of its own.
#ifndef QUANTD_SERVER_SCHEDULING_THREAD_POOL_H_
#define QUANTD_SERVER_SCHEDULING_THREAD_POOL_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "server/loop/loop.h"

namespace quantd::scheduling {

class ThreadPool {
 public:
  // Starts one leading thread per loop, and `spare` parked ones. REQUIRES: the loops outlive the
  // pool.
  ThreadPool(const std::vector<loop::Loop*>& loops, int spare);
  // Stops the loops and joins the threads. REQUIRES: no call is alive.
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // Hands the loop that this thread leads to a parked thread. Returns false and does nothing if
  // this thread leads none or no thread is parked. Afterwards this thread must not use what belongs
  // to the loop.
  bool HandOver();

  int threads() const { return static_cast<int>(threads_.size()); }
  // Threads that are neither leading nor parked.
  int computing() const { return computing_.load(std::memory_order_relaxed); }

 private:
  struct Thread {
    std::thread thread;
    std::atomic<uint32_t> wakeups{0};
    loop::Loop* loop = nullptr;  // the loop to lead; null: end
  };
  void Main(Thread& self, loop::Loop* loop);
  // Returns the loop to lead next, or nullptr to end.
  loop::Loop* Park(Thread& self);
  // Waits until it has been woken more than `wakeups` times.
  static loop::Loop* Await(const Thread& self, uint32_t wakeups);
  static void Wake(Thread& thread, loop::Loop* loop);

  const std::vector<loop::Loop*> loops_;
  std::vector<std::unique_ptr<Thread>> threads_;
  std::atomic<int> computing_{0};
  std::mutex mutex_;
  std::vector<Thread*> parked_;
  bool ending_ = false;
};

}  // namespace quantd::scheduling

#endif  // QUANTD_SERVER_SCHEDULING_THREAD_POOL_H_
