// Memory for messages and responses: one contiguous piece each.
//
//   Pool pool;
//   Buffer buffer = pool.Allocate(16 << 20);
//   if (buffer.data() == nullptr) ...        // the system is out of memory
//
// Large buffers are mappings that are kept for the next request and unmapped when they have not
// been needed for some seconds. A fresh mapping costs a page fault every 4 KiB, which is half of
// the throughput; a server that never returns memory is what operators complain about. Mappings are
// aligned for huge pages, which the kernel is asked to use. Small buffers come from malloc.
#ifndef QUANTD_SERVER_MEMORY_BUFFER_H_
#define QUANTD_SERVER_MEMORY_BUFFER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>

namespace quantd::memory {

class Pool;

// Owns a piece of memory, or nothing. Movable; for one thread at a time.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer() { Free(); }

  // Null if it owns nothing. Uninitialised.
  uint8_t* data() const { return data_; }
  // Bytes that may be used: at least as many as were asked for.
  size_t capacity() const { return capacity_; }

 private:
  friend class Pool;
  Buffer(uint8_t* data, size_t capacity, Pool* pool)
      : data_(data), capacity_(capacity), pool_(pool) {}
  void Free();

  uint8_t* data_ = nullptr;
  size_t capacity_ = 0;
  Pool* pool_ = nullptr;  // null: from malloc
};

// A range of bytes in a buffer.
struct Piece {
  Buffer buffer;
  uint8_t* begin = nullptr;
  size_t size = 0;
};

// Thread-safe. Must outlive its buffers.
class Pool {
 public:
  // Buffers from this size on are mappings.
  static constexpr size_t kMapped = 128 << 10;

  Pool() = default;
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // Returns an empty buffer if the system is out of memory even after kept mappings are returned.
  Buffer Allocate(size_t bytes);

  // What a buffer for `bytes` takes: from kMapped on, sizes are rounded up by at most a quarter.
  // Whoever counts memory counts this.
  static uint64_t Footprint(size_t bytes);

  // Bytes of mappings in use, and of mappings that are kept for the next request.
  uint64_t used_bytes() const;
  uint64_t kept_bytes() const;

  // Limits used and kept mappings together to `bytes`: kept ones are returned to make room. Used
  // ones are never refused; admission decides how much may be used.
  void Limit(uint64_t bytes);

  // Returns the kept mappings beyond the peak use of the last kPeriods calls. Call this every
  // second.
  void GiveBack();

 private:
  friend class Buffer;
  // The header of a kept mapping, in its own first bytes, so that keeping it uses no memory.
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
  // Takes kept mappings, the largest first, until at most `bytes` are kept. REQUIRES: mutex_ held.
  // The caller unmaps them without the mutex, because that takes a millisecond for some.
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
