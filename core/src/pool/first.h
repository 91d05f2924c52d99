// The first element, in the order of the tensor, at which parallel tasks found
// something.
#ifndef QUANTD_SRC_POOL_FIRST_H_
#define QUANTD_SRC_POOL_FIRST_H_

#include <atomic>
#include <cstdint>

namespace quantd {

// Tasks beyond it may stop; tasks before it must continue.
class First {
 public:
  explicit First(int64_t none) : first_(none) {}

  int64_t index() const { return first_.load(std::memory_order_relaxed); }
  void Found(int64_t index) {
    int64_t first = first_.load(std::memory_order_relaxed);
    while (index < first && !first_.compare_exchange_weak(first, index)) {
    }
  }

 private:
  std::atomic<int64_t> first_;
};

}  // namespace quantd

#endif  // QUANTD_SRC_POOL_FIRST_H_
