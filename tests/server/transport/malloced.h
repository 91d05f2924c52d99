// The bytes that malloc has given out, as the allocator of this process counts them.
#ifndef QUANTD_TESTS_SERVER_TRANSPORT_MALLOCED_H_
#define QUANTD_TESTS_SERVER_TRANSPORT_MALLOCED_H_

#include <malloc.h>

#include <cstddef>
#include <cstdint>

// Only a sanitizer has it: with its allocator, mallinfo2 says 0. g++ has no header for it.
// NOLINTNEXTLINE(bugprone-reserved-identifier)
extern "C" size_t __sanitizer_get_current_allocated_bytes() __attribute__((weak));

namespace quantd {

// Bytes of the blocks that have not been freed yet.
inline uint64_t MallocedBytes() {
  if (__sanitizer_get_current_allocated_bytes != nullptr) {
    return __sanitizer_get_current_allocated_bytes();
  }
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

}  // namespace quantd

#endif  // QUANTD_TESTS_SERVER_TRANSPORT_MALLOCED_H_
