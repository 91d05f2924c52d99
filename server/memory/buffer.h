// The memory that messages and responses lie in: one contiguous piece each.
//
//   Pool pool;
//   Buffer buffer = pool.Allocate(16 << 20);
//   if (buffer.data() == nullptr) ...        // the system has none
//
// Large buffers are mappings of their own, kept for the next request and given back when nobody has
// needed them for some seconds: a fresh mapping costs a page fault every 4 KiB, which is half of
// the throughput, and a server that never gives back is what operators complain of. They are
// aligned for huge pages, which the kernel is asked to use. Small ones come from malloc.
#ifndef QUANTD_SERVER_MEMORY_BUFFER_H_
#define QUANTD_SERVER_MEMORY_BUFFER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>

namespace quantd::memory {

class Pool;

// Owns a piece of memory, or nothing. Movable; not safe from two threads at a time.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer() { Free(); }

  // Null when it owns nothing. Uninitialised.
  uint8_t* data() const { return data_; }
  // Bytes that may be used: at least what was asked for.
  size_t capacity() const { return capacity_; }

 private:
  friend class Pool;
  Buffer(uint8_t* data, size_t capacity, Pool* pool)
      : data_(data), capacity_(capacity), pool_(pool) {}
  void Free();

  uint8_t* data_ = nullptr;
  size_t capacity_ = 0;
  Pool* pool_ = nullptr;  // null: malloc's
};

// Bytes somewhere in a buffer.
struct Piece {
  Buffer buffer;
  uint8_t* begin = nullptr;
  size_t size = 0;
};

// Safe from any thread. Outlives its buffers.
class Pool {
 public:
  // Buffers from this size on are mappings.
  static constexpr size_t kMapped = 128 << 10;

  Pool() = default;
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // An empty buffer when the system has no memory left, even without what is kept.
  Buffer Allocate(size_t bytes);

  // What a buffer for `bytes` takes at most: sizes are rounded up, by a quarter at most from
  // kMapped on.
  static uint64_t Footprint(size_t bytes);

  // Bytes of mappings that are in use, and of those that are kept for the next request.
  uint64_t used_bytes() const;
  uint64_t kept_bytes() const;

  // Used and kept together stay below `bytes`: kept ones are given back to make room. What is used
  // is not refused: who may use how much is admission's matter.
  void Limit(uint64_t bytes);

  // Gives back what is kept beyond what was in use at any time of the last kPeriods calls. Call it
  // every second.
  void GiveBack();

 private:
  friend class Buffer;
  // A kept mapping, in its own first bytes: giving a buffer back takes no memory.
  struct Kept {
    Kept* next;
    size_t bytes;
  };
  // Sizes: (4 + c % 4) << (15 + c / 4), so four to each power of two, from 128 KiB to over 4 GiB.
  static constexpr size_t kClasses = 64;
  static size_t ClassOf(size_t bytes);
  static size_t ClassBytes(size_t size_class) {
    return (4 + size_class % 4) << (15 + size_class / 4);
  }
  void Free(uint8_t* data, size_t capacity);
  // Takes kept mappings, the largest ones first, until at most `bytes` are kept. REQUIRES: mutex_
  // held. To be unmapped without it: that takes a millisecond for some.
  Kept* TakeKept(uint64_t bytes);
  static void Unmap(Kept* mappings);

  mutable std::mutex mutex_;
  std::array<Kept*, kClasses> kept_{};  // lists
  uint64_t used_bytes_ = 0;
  uint64_t kept_bytes_ = 0;
  uint64_t limit_bytes_ = UINT64_MAX;
  static constexpr size_t kPeriods = 4;
  std::array<uint64_t, kPeriods> peaks_{};  // of used_bytes_; the current period's is peaks_[0]
};

}  // namespace quantd::memory

#endif  // QUANTD_SERVER_MEMORY_BUFFER_H_
