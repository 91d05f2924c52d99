#include "server/regions/sigbus_guard.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <mutex>

namespace quantd::regions {
namespace {

// Read by the signal handler while others change it, so everything is atomic. The slot of the
// faulting access does not change, because its range is in use; torn ranges of other slots must be
// ignored.
struct Slot {
  std::atomic<bool> taken{false};
  std::atomic<bool> damaged{false};
  std::atomic<uint32_t> version{0};  // odd: begin and end are being changed
  std::atomic<uintptr_t> begin{0};
  std::atomic<uintptr_t> end{0};
};
static_assert(std::atomic<uintptr_t>::is_always_lock_free);
constinit std::array<Slot, kMaxGuarded> slots;

std::atomic<uint64_t> damaged_ranges{0};
static_assert(std::atomic<uint64_t>::is_always_lock_free);

uintptr_t page_size = 4096;
struct sigaction handler_before;

void SetRange(Slot& slot, uintptr_t begin, uintptr_t end) {
  slot.version.fetch_add(1);
  slot.begin.store(begin);
  slot.end.store(end);
  slot.version.fetch_add(1);
}

// Replaces the pages from the address to the end of its range. They use memory only when they are
// written, and kernels stop before that (IsDamaged).
bool Replace(uintptr_t address) {
  for (Slot& slot : slots) {
    const uint32_t version = slot.version.load();
    const uintptr_t begin = slot.begin.load();
    const uintptr_t end = slot.end.load();
    if (version % 2 != 0 || address < begin || address >= end) continue;
    if (slot.version.load() != version) continue;
    if (!slot.damaged.exchange(true)) damaged_ranges.fetch_add(1);
    const uintptr_t page = address / page_size * page_size;
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    return mmap(reinterpret_cast<void*>(page), end - page, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED;
  }
  return false;
}

void OnBusError(int /*number*/, siginfo_t* info, void* /*context*/) {
  const int error = errno;
  const bool sent = info->si_code <= 0;  // sent by a process, not caused by an access
  if (!sent && Replace(reinterpret_cast<uintptr_t>(info->si_addr))) {
    errno = error;
    return;
  }
  // Not ours. When this returns, the access is repeated and handled as before.
  sigaction(SIGBUS, &handler_before, nullptr);
  if (sent) raise(SIGBUS);
  errno = error;
}

}  // namespace

void InstallSigbusGuard() {
  static std::once_flag once;
  std::call_once(once, [] {
    page_size = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    struct sigaction action = {};
    action.sa_sigaction = OnBusError;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, &handler_before);
  });
}

int ProtectFromSigbus(uint8_t* data, size_t size) {
  for (size_t i = 0; i < slots.size(); ++i) {
    Slot& slot = slots[i];
    if (slot.taken.load(std::memory_order_relaxed) || slot.taken.exchange(true)) continue;
    slot.damaged.store(false);
    // Includes the last page to its end, which also belongs to the mapping.
    const auto begin = reinterpret_cast<uintptr_t>(data);
    SetRange(slot, begin, begin + (size + page_size - 1) / page_size * page_size);
    return static_cast<int>(i);
  }
  return -1;
}

bool IsDamaged(int slot) { return slots[static_cast<size_t>(slot)].damaged.load(); }

uint64_t CountDamaged() { return damaged_ranges.load(); }

void Unguard(int slot) {
  Slot& free = slots[static_cast<size_t>(slot)];
  SetRange(free, 0, 0);
  free.taken.store(false);
}

}  // namespace quantd::regions
