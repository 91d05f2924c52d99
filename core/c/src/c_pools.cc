#include "c_pools.h"

#include <map>
#include <mutex>

namespace quantd::c {
namespace {

class Pools {
 public:
  const Executor& Of(int threads) {
    if (threads == 0 || threads >= all_.threads()) return all_;
    const std::lock_guard<std::mutex> lock(mutex_);
    return fewer_.try_emplace(threads, threads).first->second;
  }

 private:
  // There from the start: oneTBB's limit to a process's workers is that of the largest pool, and a
  // program that uses oneTBB itself must not be left with fewer than it has CPUs.
  const Executor all_{0};
  std::mutex mutex_;
  std::map<int, Executor> fewer_;  // fewer of them than CPUs
};

}  // namespace

const Executor& PoolOf(int threads) {
  static auto* const pools = new Pools;  // never destroyed: calls may come from destructors
  return pools->Of(threads);
}

}  // namespace quantd::c
