#include "server/process/malloc.h"

#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <sstream>

namespace quantd::process {
namespace {

// Always kept.
constexpr uint64_t kAlwaysKept = 8 << 20;

uint64_t ResidentAnonymousBytes() {
  // It stays open, because later there may be no free descriptor.
  static const int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  char text[256] = "";
  if (pread(file, text, sizeof(text) - 1, 0) <= 0) return 0;
  uint64_t total = 0, resident = 0, shared = 0;
  std::istringstream(text) >> total >> resident >> shared;
  return (resident - std::min(resident, shared)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

void KeepFreedMemory() {
  // Blocks up to 1 GiB come from the heap, not from separate mappings; the heap is not trimmed when
  // its end is free; it grows by 1 MiB at a time. There is one arena: memory freed by one thread
  // can be reused by another, so the heap is as large as the traffic needs, and not that times the
  // threads.
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, INT_MAX);
  mallopt(M_TOP_PAD, 1 << 20);
  mallopt(M_ARENA_MAX, 1);
  ResidentAnonymousBytes();  // opens its file
}

uint64_t KeptByMalloc(uint64_t mapped) {
  const struct mallinfo2 info = mallinfo2();
  const uint64_t used = info.uordblks + info.hblkhd + mapped;
  const uint64_t resident = ResidentAnonymousBytes();
  return resident - std::min(resident, used);
}

void MemoryKeeper::Look(uint64_t mapped) {
  kept_[next_++ % kLooks] = KeptByMalloc(mapped);
  if (*std::min_element(kept_.begin(), kept_.end()) > floor_ + kAlwaysKept) {
    malloc_trim(0);
    floor_ = KeptByMalloc(mapped);
  }
}

}  // namespace quantd::process
