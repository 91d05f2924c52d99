#include "pools.h"

#include <pthread.h>

#include <array>
#include <atomic>
#include <mutex>

namespace quantd::python {
namespace {

// Never destroyed: threads may compute while the process ends.
std::array<std::atomic<const Executor*>, kMostThreads + 1> pools{};
std::mutex making;
std::atomic<bool> started = false;  // a pool with threads of its own
std::atomic<bool> orphaned = false;

void InChild() {
  if (started.load(std::memory_order_relaxed)) orphaned.store(true, std::memory_order_relaxed);
}

}  // namespace

void InitPools() {
  // One thread needs no other: it is what a child of fork() has left, so it must be there.
  pools[1] = new Executor(1);
  pthread_atfork(nullptr, nullptr, InChild);
}

const Executor& Pool(int threads) {
  if (orphaned.load(std::memory_order_relaxed)) threads = 1;
  const Executor* pool = pools[static_cast<size_t>(threads)].load(std::memory_order_acquire);
  if (pool != nullptr) return *pool;
  const std::lock_guard<std::mutex> lock(making);
  pool = pools[static_cast<size_t>(threads)].load(std::memory_order_relaxed);
  if (pool == nullptr) {
    started.store(true, std::memory_order_relaxed);
    pool = new Executor(threads);
    pools[static_cast<size_t>(threads)].store(pool, std::memory_order_release);
  }
  return *pool;
}

}  // namespace quantd::python
