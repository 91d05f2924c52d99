// See memory.h.
#include "server/lifecycle/memory.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <climits>
#include <fstream>
#include <utility>

namespace quantd::lifecycle {
namespace {

// Kept whatever the traffic: small requests after a pause shall not fault.
constexpr uint64_t kAlwaysKept = 24 << 20;
// Seconds of traffic that decide how much is worth keeping.
constexpr size_t kWindows = 4;

uint64_t ResidentAnonymousBytes() {
  uint64_t total = 0, resident = 0, shared = 0;
  std::ifstream("/proc/self/statm") >> total >> resident >> shared;
  return (resident - std::min(resident, shared)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

void KeepFreedMemory() {
  // Buffers up to 1 GiB come from the heap, not from mappings of their own; the heap is not cut
  // when its end is free; it grows by 8 MiB at a time. One arena: what one thread frees another one
  // can use, so that the heap is as large as the traffic needs and not that times the threads.
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, INT_MAX);
  mallopt(M_TOP_PAD, 8 << 20);
  mallopt(M_ARENA_MAX, 1);
}

uint64_t KeptBytes() {
  const struct mallinfo2 info = mallinfo2();
  const uint64_t used = info.uordblks + info.hblkhd;
  const uint64_t resident = ResidentAnonymousBytes();
  return resident - std::min(resident, used);
}

MemoryKeeper::MemoryKeeper(std::function<uint64_t()> take_peak_bytes)
    : take_peak_bytes_(std::move(take_peak_bytes)), thread_([this] { Run(); }) {}

MemoryKeeper::~MemoryKeeper() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  stop_.notify_all();
  thread_.join();
}

void MemoryKeeper::Run() {
  std::array<uint64_t, kWindows> peaks{};
  size_t next = 0;
  // What could not be given back the last time (stacks, pages in part use).
  uint64_t floor = 0;
  std::unique_lock lock(mutex_);
  while (!stop_.wait_for(lock, std::chrono::seconds(1), [this] { return stopped_; })) {
    peaks[next++ % kWindows] = take_peak_bytes_();
    // Twice: gRPC holds the bytes that are on their way in and out as well.
    const uint64_t wanted = kAlwaysKept + 2 * *std::max_element(peaks.begin(), peaks.end());
    if (KeptBytes() > floor + wanted) {
      malloc_trim(0);
      floor = KeptBytes();
    }
  }
}

}  // namespace quantd::lifecycle
