#include "quantd/shared_executor.h"

#include <pthread.h>

#include <array>
#include <atomic>
#include <mutex>

namespace quantd {
namespace {

// Never destroyed, because threads may compute while the process ends.
class SharedExecutors {
 public:
  SharedExecutors() {
    // The executor for one thread has no workers. A child of fork() uses it, so it must exist.
    executors_[1] = new Executor(1);
    pthread_atfork(nullptr, nullptr, InChild);
  }

  const Executor& Of(int threads) {
    if (orphaned_.load(std::memory_order_relaxed)) threads = 1;
    std::atomic<const Executor*>& place = executors_[static_cast<size_t>(threads)];
    const Executor* executor = place.load(std::memory_order_acquire);
    if (executor != nullptr) return *executor;
    const std::lock_guard<std::mutex> lock(making_);
    executor = place.load(std::memory_order_relaxed);
    if (executor == nullptr) {
      started_.store(true, std::memory_order_relaxed);
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
  static void InChild() {
    SharedExecutors& of = Instance();
    if (of.started_.load(std::memory_order_relaxed)) of.orphaned_.store(true);
  }

  std::array<std::atomic<const Executor*>, kMostSharedThreads + 1> executors_{};
  std::mutex making_;
  std::atomic<bool> started_ = false;  // whether an executor with threads of its own was made
  std::atomic<bool> orphaned_ = false;
};

}  // namespace

const Executor& SharedExecutor(int threads) { return SharedExecutors::Instance().Of(threads); }

}  // namespace quantd
