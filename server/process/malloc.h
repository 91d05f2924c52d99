// What malloc keeps. glibc's defaults give blocks of some size back to the kernel and fault them in
// again with the next request. So freed memory is kept, and given back when it has not been needed
// for some seconds. Messages and responses are not malloc's (memory/buffer.h): this is about
// decoded values, columns of scales and other scratch.
#ifndef QUANTD_SERVER_PROCESS_MALLOC_H_
#define QUANTD_SERVER_PROCESS_MALLOC_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace quantd::process {

// Sets malloc up to keep what is freed. Call once, first thing in main.
void KeepFreedMemory();

// Resident bytes that no allocation uses; `mapped`: bytes that others have mapped.
uint64_t KeptByMalloc(uint64_t mapped);

// Gives back what was kept, and not needed for some seconds.
class MemoryKeeper {
 public:
  // Once a second, from one thread. `mapped`: as above.
  void Look(uint64_t mapped);

 private:
  // What was free at every look of so many is not needed.
  static constexpr size_t kLooks = 4;

  std::array<uint64_t, kLooks> kept_{};
  size_t next_ = 0;
  uint64_t floor_ = 0;  // what could not be given back the last time (stacks, pages in part use)
};

}  // namespace quantd::process

#endif  // QUANTD_SERVER_PROCESS_MALLOC_H_
