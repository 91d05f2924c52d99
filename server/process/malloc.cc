// See malloc.h.
#include "server/process/malloc.h"

#include <malloc.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <climits>
#include <fstream>
#include <utility>

namespace quantd::process {
namespace {

// Kept whatever the traffic.
constexpr uint64_t kAlwaysKept = 8 << 20;
// What was free at every look of so many seconds is not needed.
constexpr size_t kLooks = 4;

uint64_t ResidentAnonymousBytes() {
  uint64_t total = 0, resident = 0, shared = 0;
  std::ifstream("/proc/self/statm") >> total >> resident >> shared;
  return (resident - std::min(resident, shared)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

void KeepFreedMemory() {
  // Blocks up to 1 GiB come from the heap, not from mappings of their own; the heap is not cut when
  // its end is free; it grows by 1 MiB at a time. One arena: what one thread frees another one can
  // use, so that the heap is as large as the traffic needs and not that times the threads.
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, INT_MAX);
  mallopt(M_TOP_PAD, 1 << 20);
  mallopt(M_ARENA_MAX, 1);
}

uint64_t KeptByMalloc(uint64_t mapped) {
  const struct mallinfo2 info = mallinfo2();
  const uint64_t used = info.uordblks + info.hblkhd + mapped;
  const uint64_t resident = ResidentAnonymousBytes();
  return resident - std::min(resident, used);
}

MemoryKeeper::MemoryKeeper(std::function<uint64_t()> every_second)
    : every_second_(std::move(every_second)), thread_([this] { Run(); }) {
  pthread_setname_np(thread_.native_handle(), "quantd-memory");
}

MemoryKeeper::~MemoryKeeper() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  stop_.notify_all();
  thread_.join();
}

void MemoryKeeper::Run() {
  std::array<uint64_t, kLooks> kept{};
  size_t next = 0;
  // What could not be given back the last time (stacks, pages in part use).
  uint64_t floor = 0;
  std::unique_lock lock(mutex_);
  while (!stop_.wait_for(lock, std::chrono::seconds(1), [this] { return stopped_; })) {
    const uint64_t mapped = every_second_();
    kept[next++ % kLooks] = KeptByMalloc(mapped);
    if (*std::min_element(kept.begin(), kept.end()) > floor + kAlwaysKept) {
      malloc_trim(0);
      floor = KeptByMalloc(mapped);
    }
  }
}

}  // namespace quantd::process
