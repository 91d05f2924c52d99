// Decides when streaming stores pay off (QuantizeTile::stream, DequantizeTile::stream).
#ifndef QUANTD_SRC_LINEAR_BEYOND_CACHES_H_
#define QUANTD_SRC_LINEAR_BEYOND_CACHES_H_

#include <unistd.h>

#include <algorithm>
#include <cstdint>

namespace quantd {

// Whether an operation moves too many bytes for any to be in a cache when they are used next. A
// virtual machine may report its host's caches (320 MiB, of which a CPU reaches 32), so at most 32
// MiB are assumed.
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
