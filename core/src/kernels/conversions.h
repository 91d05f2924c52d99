// How the elements of a type get in and out of tiles.
#ifndef QUANTD_SRC_KERNELS_CONVERSIONS_H_
#define QUANTD_SRC_KERNELS_CONVERSIONS_H_

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

}  // namespace quantd

#endif  // QUANTD_SRC_KERNELS_CONVERSIONS_H_
