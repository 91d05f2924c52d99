// What bounds a kernel: memory traffic of the same shape with as little arithmetic as possible.
#ifndef QUANTD_TESTS_BENCH_LIMIT_H_
#define QUANTD_TESTS_BENCH_LIMIT_H_

#include <cstddef>
#include <cstdint>

namespace quantd::bench {

enum class Limit {
  kNarrow8,   // read 4 bytes, write 1
  kNarrow16,  // read 4 bytes, write 2
  kWiden8,    // read 1 byte, write 4
  kWiden16,   // read 2 bytes, write 4
  kCopy32,    // read 4 bytes, write 4
  kRead,      // read floats, keep the smallest and the largest
};
const char* LimitName(Limit limit);

// Runs over `size` elements. `stream`: with stores that bypass the caches.
void RunLimit(Limit limit, const uint8_t* x, size_t size, uint8_t* y, bool stream);

}  // namespace quantd::bench

#endif  // QUANTD_TESTS_BENCH_LIMIT_H_
