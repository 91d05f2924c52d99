#include "counted_memory.h"

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<size_t> live{0};
std::atomic<size_t> peak{0};
std::atomic<size_t> allocations{0};
size_t live_before = 0;
size_t allocations_before = 0;

size_t Cost(void* block) { return malloc_usable_size(block) + sizeof(size_t); }

}  // namespace

void* operator new(size_t size) {
  void* const block = std::malloc(size);
  if (block == nullptr) std::abort();
  const size_t now = live += Cost(block);
  size_t before = peak.load();
  while (before < now && !peak.compare_exchange_weak(before, now)) {
  }
  ++allocations;
  return block;
}
// A sanitizer has its own version, whose memory the operators below must not free.
void* operator new(size_t size, const std::nothrow_t&) noexcept { return operator new(size); }
void operator delete(void* block) noexcept {
  if (block == nullptr) return;
  live -= Cost(block);
  std::free(block);
}
void operator delete(void* block, size_t) noexcept { operator delete(block); }

namespace quantd::wire {

void StartCounting() {
  live_before = live;
  allocations_before = allocations;
  peak = live_before;
}

MemoryUsed Counted() { return {peak - live_before, allocations - allocations_before}; }

}  // namespace quantd::wire
