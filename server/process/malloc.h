// What malloc keeps. With its defaults, glibc returns larger blocks to the kernel and faults them
// in again for the next request. So quantd keeps freed memory, and returns it when it has not been
// needed for some seconds. Messages and responses do not come from malloc (memory/buffer.h): this
// is about decoded values, columns of scales and other scratch.
#ifndef QUANTD_SERVER_PROCESS_MALLOC_H_
#define QUANTD_SERVER_PROCESS_MALLOC_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace quantd::process {

// Makes malloc keep freed memory. Call this once, first thing in main.
void KeepFreedMemory();

// Resident bytes that no allocation uses; `mapped`: bytes of mappings that are not malloc's.
uint64_t KeptByMalloc(uint64_t mapped);

// Returns kept memory that has not been needed for some seconds.
class MemoryKeeper {
 public:
  // Call once a second, from one thread. `mapped`: see KeptByMalloc.
  void Look(uint64_t mapped);

 private:
  // Memory that was free at this number of consecutive looks is not needed.
  static constexpr size_t kLooks = 4;

  std::array<uint64_t, kLooks> kept_{};
  size_t next_ = 0;
  uint64_t floor_ = 0;  // what could not be returned the last time (stacks, partly used pages)
};

}  // namespace quantd::process

#endif  // QUANTD_SERVER_PROCESS_MALLOC_H_
