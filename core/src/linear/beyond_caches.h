// When streaming stores pay (QuantizeTile::stream, DequantizeTile::stream).
#ifndef QUANTD_SRC_LINEAR_BEYOND_CACHES_H_
#define QUANTD_SRC_LINEAR_BEYOND_CACHES_H_

#include <unistd.h>

#include <algorithm>
#include <cstdint>

namespace quantd {

// Whether an operation moves so many bytes that none will be in a cache when they are used next.
// A virtual machine may be told of its host's caches (320 MiB where 32 are within reach of a CPU),
// so no more than 32 MiB are believed.
inline bool BeyondCaches(uint64_t bytes) {
  static const uint64_t cache = [] {
    constexpr uint64_t kMost = uint64_t{32} << 20;
    const long level3 = sysconf(_SC_LEVEL3_CACHE_SIZE);
    return level3 > 0 ? std::min(static_cast<uint64_t>(level3), kMost) : kMost;
  }();
  return bytes > cache;
}

}  // namespace quantd

#endif  // QUANTD_SRC_LINEAR_BEYOND_CACHES_H_
