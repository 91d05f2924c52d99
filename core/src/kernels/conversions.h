// How the elements of a type get in and out of tiles.
#ifndef QUANTD_SRC_KERNELS_CONVERSIONS_H_
#define QUANTD_SRC_KERNELS_CONVERSIONS_H_

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/kernel_table.h"
#include "quantd/data_type.h"

namespace quantd {

// Converts `size` elements from one form to another; null where they are the same.
using ConvertTile = void (*)(const uint8_t* from, size_t size, uint8_t* to);

inline ConvertTile ToFloat(const KernelTable& kernels, DataType type) {
  switch (type) {
    case DataType::kFloat16:
      return kernels.float16_to_float;
    case DataType::kBfloat16:
      return kernels.bfloat16_to_float;
    case DataType::kInt32:
      return kernels.int32_to_float;
    default:
      return nullptr;
  }
}

inline ConvertTile FromFloat(const KernelTable& kernels, DataType type) {
  switch (type) {
    case DataType::kFloat16:
      return kernels.float_to_float16;
    case DataType::kBfloat16:
      return kernels.float_to_bfloat16;
    default:
      return nullptr;
  }
}

// From one byte a code.
inline ConvertTile Pack(const KernelTable& kernels, int bits) {
  return bits == 4 ? kernels.pack4 : bits == 2 ? kernels.pack2 : nullptr;
}

// To one byte a code.
inline ConvertTile Unpack(const KernelTable& kernels, DataType type) {
  switch (type) {
    case DataType::kUint4:
    case DataType::kFloat4E2M1:
      return kernels.unpack_uint4;
    case DataType::kInt4:
      return kernels.unpack_int4;
    case DataType::kUint2:
      return kernels.unpack_uint2;
    case DataType::kInt2:
      return kernels.unpack_int2;
    default:
      return nullptr;
  }
}

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

#endif  // QUANTD_SRC_KERNELS_CONVERSIONS_H_
