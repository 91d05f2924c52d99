#include "quantd/shared_executor.h"

#include <oneapi/tbb/global_control.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <mutex>
#include <new>

namespace quantd {
namespace {

// Never destroyed, because threads may compute while the process ends.
class SharedExecutors {
 public:
  SharedExecutors() {
    // The executor for one thread has no workers. A child of fork() uses it, so it must exist.
    executors_[1] = new Executor(1);
    pthread_atfork(BeforeFork, nullptr, InChild);
  }

  const Executor& Of(int threads) {
    if (orphaned_.load(std::memory_order_relaxed)) threads = 1;
    std::atomic<const Executor*>& place = executors_[static_cast<size_t>(threads)];
    const Executor* executor = place.load(std::memory_order_acquire);
    if (executor != nullptr) return *executor;
    const std::lock_guard<std::mutex> lock(making_);
    executor = place.load(std::memory_order_relaxed);
    if (executor == nullptr) {
      if (!started_) lasting_ = oneapi::tbb::task_scheduler_handle(oneapi::tbb::attach());
      started_.store(true, std::memory_order_release);
      executor = new Executor(threads);
      place.store(executor, std::memory_order_release);
    }
    return *executor;
  }

  static SharedExecutors& Instance() {
    static auto* const instance = new SharedExecutors;
    return *instance;
  }

 private:
  // When a process ends, oneTBB takes leave of the thread that ends it, with locks. In a child
  // they may be held for ever, by threads that do not exist there. So the thread that forks takes
  // its leave before. There is another handle, so nothing is waited for.
  static void BeforeFork() {
    if (!Instance().started_.load(std::memory_order_acquire)) return;
    oneapi::tbb::task_scheduler_handle handle{oneapi::tbb::attach()};
    static_cast<void>(oneapi::tbb::finalize(handle, std::nothrow));
  }

  static void InChild() {
    SharedExecutors& of = Instance();
    if (of.started_.load(std::memory_order_relaxed)) of.orphaned_.store(true);
  }

  std::array<std::atomic<const Executor*>, kMostSharedThreads + 1> executors_{};
  std::mutex making_;
  oneapi::tbb::task_scheduler_handle lasting_;
  std::atomic<bool> started_ = false;  // whether an executor with threads of its own was made
  std::atomic<bool> orphaned_ = false;
};

}  // namespace

const Executor& SharedExecutor(int threads) { return SharedExecutors::Instance().Of(threads); }

}  // namespace quantd
