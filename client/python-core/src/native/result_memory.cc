#include "result_memory.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <utility>

namespace quantd::python {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr unsigned kSeconds = 1;

// 4 KiB, or up to 64 on Arm.
size_t Page() {
  static const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return page;
}

// The page before an array's data.
struct Block {
  size_t bytes;  // of data
  bool idle;     // since the last look of GiveBack

  void* data() { return reinterpret_cast<uint8_t*>(this) + Page(); }
  static Block* Of(void* data) {
    return reinterpret_cast<Block*>(static_cast<uint8_t*>(data) - Page());
  }
};

// A block belongs to who took it out of its place. Without a lock, because a fork might copy one
// that is held.
std::atomic<Block*> kept[4];
std::atomic<size_t> kept_bytes{0};
std::atomic<bool> has_thread{false};

// The data begins at a huge page. Null if there is no memory.
Block* Map(size_t bytes) {
  bytes = (bytes + Page() - 1) / Page() * Page();
  const size_t mapped = bytes + Page() + kHugePage;
  if (mapped < bytes) return nullptr;
  void* const begin =
      mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (begin == MAP_FAILED) return nullptr;
  auto* const from = static_cast<uint8_t*>(begin);
  const auto address = reinterpret_cast<uintptr_t>(from) + Page();
  uint8_t* const data = from + Page() + (kHugePage - address % kHugePage) % kHugePage;
  uint8_t* const end = data + bytes;
  if (data - Page() > from) munmap(from, static_cast<size_t>(data - Page() - from));
  if (from + mapped > end) munmap(end, static_cast<size_t>(from + mapped - end));
  madvise(data, bytes, MADV_HUGEPAGE);
  Block* const block = Block::Of(data);
  block->bytes = bytes;
  return block;
}

void Unmap(Block* block) { munmap(block, Page() + block->bytes); }

Block* TakeFrom(std::atomic<Block*>& place) {
  Block* const block = place.exchange(nullptr);
  if (block != nullptr) kept_bytes -= block->bytes;
  return block;
}

void UnmapKept() {
  for (std::atomic<Block*>& place : kept) {
    if (Block* const block = TakeFrom(place)) Unmap(block);
  }
}

bool PutAway(Block* block) {
  if (kept_bytes.fetch_add(block->bytes) + block->bytes <= ResultMemory::kMostKept) {
    for (std::atomic<Block*>& place : kept) {
      Block* none = nullptr;
      if (place.compare_exchange_strong(none, block)) return true;
    }
  }
  kept_bytes -= block->bytes;
  Unmap(block);
  return false;
}

// The thread that gives back what has been idle; it ends when nothing is kept.
void* GiveBack(void*) {
  do {
    do {
      sleep(kSeconds);
      for (std::atomic<Block*>& place : kept) {
        Block* const block = TakeFrom(place);
        if (block == nullptr) continue;
        if (std::exchange(block->idle, true)) {
          Unmap(block);
        } else {
          PutAway(block);
        }
      }
    } while (kept_bytes != 0);
    has_thread = false;
  } while (kept_bytes != 0 && !has_thread.exchange(true));
  return nullptr;
}

bool StartThread() {
  // A child of a fork has no thread. What is kept would be copied for it, page by page.
  static const int error = pthread_atfork(nullptr, nullptr, [] {
    UnmapKept();
    kept_bytes = 0;
    has_thread = false;
  });
  // Signals are for the program's own threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  const bool started = error == 0 && pthread_create(&thread, nullptr, GiveBack, nullptr) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (started) pthread_detach(thread);
  return started;
}

void Keep(Block* block) {
  if (!PutAway(block) || has_thread.exchange(true) || StartThread()) return;
  has_thread = false;
  UnmapKept();
}

void* Allocate(void*, size_t bytes) {
  for (std::atomic<Block*>& place : kept) {
    Block* const block = TakeFrom(place);
    if (block == nullptr) continue;
    if (block->bytes >= bytes && block->bytes / 2 <= bytes) return block->data();
    Keep(block);
  }
  Block* const block = Map(bytes);
  return block == nullptr ? nullptr : block->data();
}

void* AllocateZeros(void*, size_t count, size_t size) {
  Block* const block = size != 0 && count > SIZE_MAX / size ? nullptr : Map(count * size);
  return block == nullptr ? nullptr : block->data();
}

void Free(void*, void* data, size_t) {
  if (data == nullptr) return;
  Block* const block = Block::Of(data);
  block->idle = false;
  Keep(block);
}

void* Resize(void*, void* data, size_t bytes) {
  void* const made = Allocate(nullptr, bytes);
  if (made == nullptr || data == nullptr) return made;
  std::memcpy(made, data, std::min(Block::Of(data)->bytes, bytes));
  Free(nullptr, data, 0);
  return made;
}

nb::object SetHandler(nb::handle handler) { return Stolen(PyDataMem_SetHandler(handler.ptr())); }

}  // namespace

ResultMemory::ResultMemory(size_t bytes) {
  if (bytes < kLarge) return;
  static PyDataMem_Handler handler = {
      "quantd", 1, {nullptr, Allocate, AllocateZeros, Resize, Free}};
  static PyObject* const capsule =
      Stolen(PyCapsule_New(&handler, "mem_handler", nullptr)).release().ptr();
  before_ = SetHandler(capsule);
}

ResultMemory::~ResultMemory() {
  if (before_.is_valid()) SetHandler(before_);
}

}  // namespace quantd::python
