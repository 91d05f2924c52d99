#include "server/memory/buffer.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <new>
#include <utility>

namespace quantd::memory {
namespace {

constexpr size_t kHugePage = 2 << 20;

// Always kept, so that a single request after a pause causes no page faults.
constexpr uint64_t kAlwaysKept = 16 << 20;

// Mappings of a huge page or more start at a multiple of one, so that the kernel can use huge
// pages.
uint8_t* Map(size_t bytes) {
  const size_t spare = bytes >= kHugePage ? kHugePage : 0;
  void* const whole =
      mmap(nullptr, bytes + spare, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (whole == MAP_FAILED) return nullptr;
  auto* data = static_cast<uint8_t*>(whole);
  if (spare != 0) {
    const size_t before = -reinterpret_cast<uintptr_t>(data) % kHugePage;
    if (before != 0) munmap(data, before);
    if (before != spare) munmap(data + before + bytes, spare - before);
    data += before;
    madvise(data, bytes, MADV_HUGEPAGE);  // without huge pages this fails, which is harmless
  }
  return data;
}

}  // namespace

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this == &other) return *this;
  Free();
  data_ = std::exchange(other.data_, nullptr);
  capacity_ = std::exchange(other.capacity_, 0);
  pool_ = std::exchange(other.pool_, nullptr);
  return *this;
}

void Buffer::Free() {
  uint8_t* const data = std::exchange(data_, nullptr);
  if (data == nullptr) return;
  if (pool_ == nullptr) {
    std::free(data);
  } else {
    pool_->Free(data, capacity_);
  }
}

Pool::~Pool() { Unmap(TakeKept(0)); }

size_t Pool::ClassOf(size_t bytes) {
  if (bytes <= kMapped) return 0;
  const size_t shift = std::bit_width(bytes - 1) - 3;  // bytes are over 4 << shift, at most 8 << it
  const size_t units = (bytes + (size_t{1} << shift) - 1) >> shift;  // 5 to 8
  return 4 * (shift - 15) + units - 4;
}

uint64_t Pool::Footprint(size_t bytes) {
  if (bytes < kMapped || ClassOf(bytes) >= kClasses) return bytes;
  return ClassBytes(ClassOf(bytes));
}

Buffer Pool::Allocate(size_t bytes) {
  if (bytes < kMapped) {
    auto* const data = static_cast<uint8_t*>(std::malloc(std::max<size_t>(bytes, 1)));
    return Buffer(data, data == nullptr ? 0 : bytes, nullptr);
  }
  const size_t size_class = ClassOf(bytes);
  if (size_class >= kClasses) return Buffer();
  const size_t capacity = ClassBytes(size_class);
  Kept* surplus = nullptr;
  {
    const std::lock_guard lock(mutex_);
    used_bytes_ += capacity;
    peaks_[0] = std::max(peaks_[0], used_bytes_);
    if (Kept* const kept = kept_[size_class]; kept != nullptr) {
      kept_[size_class] = kept->next;
      kept_bytes_ -= capacity;
      return Buffer(reinterpret_cast<uint8_t*>(kept), capacity, this);
    }
    surplus = TakeKept(limit_bytes_ - std::min(limit_bytes_, used_bytes_));
  }
  Unmap(surplus);
  uint8_t* data = Map(capacity);
  if (data == nullptr) {
    {
      const std::lock_guard lock(mutex_);
      surplus = TakeKept(0);
    }
    Unmap(surplus);
    data = Map(capacity);
  }
  if (data != nullptr) return Buffer(data, capacity, this);
  const std::lock_guard lock(mutex_);
  used_bytes_ -= capacity;
  return Buffer();
}

void Pool::Free(uint8_t* data, size_t capacity) {
  const std::lock_guard lock(mutex_);
  used_bytes_ -= capacity;
  kept_bytes_ += capacity;
  Kept*& first = kept_[ClassOf(capacity)];
  first = new (data) Kept{first, capacity};
}

Pool::Kept* Pool::TakeKept(uint64_t bytes) {
  Kept* taken = nullptr;
  for (size_t size_class = kClasses; size_class-- > 0 && kept_bytes_ > bytes;) {
    Kept*& first = kept_[size_class];
    while (first != nullptr && kept_bytes_ > bytes) {
      kept_bytes_ -= first->bytes;
      Kept* const kept = std::exchange(first, first->next);
      kept->next = std::exchange(taken, kept);
    }
  }
  return taken;
}

void Pool::Unmap(Kept* mappings) {
  while (mappings != nullptr) {
    Kept* const next = mappings->next;
    munmap(mappings, mappings->bytes);
    mappings = next;
  }
}

uint64_t Pool::used_bytes() const {
  const std::lock_guard lock(mutex_);
  return used_bytes_;
}

uint64_t Pool::kept_bytes() const {
  const std::lock_guard lock(mutex_);
  return kept_bytes_;
}

void Pool::Limit(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  limit_bytes_ = bytes;
}

void Pool::GiveBack() {
  Kept* surplus = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const uint64_t peak = *std::max_element(peaks_.begin(), peaks_.end());
    const uint64_t wanted = std::max(peak, kAlwaysKept);
    std::rotate(peaks_.begin(), peaks_.end() - 1, peaks_.end());
    peaks_[0] = used_bytes_;
    surplus = TakeKept(wanted - std::min(wanted, used_bytes_));
  }
  Unmap(surplus);
}

}  // namespace quantd::memory
