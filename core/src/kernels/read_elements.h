// Reads packed elements of any type as 32-bit numbers. The first one may be any element, even if it
// begins inside a byte.
//
//   float values[8];
//   ReadFloats(DataType::kFloat4E2M1, bytes, /*first=*/3, /*size=*/8, values);
#ifndef QUANTD_SRC_KERNELS_READ_ELEMENTS_H_
#define QUANTD_SRC_KERNELS_READ_ELEMENTS_H_

#include <cstddef>
#include <cstdint>

#include "quantd/data_type.h"

namespace quantd {

// As FLOAT (INT32 is rounded). A NaN becomes the quiet NaN of its sign (either sign if the type has
// no signed NaN); FLOAT bits are copied unchanged.
void ReadFloats(DataType type, const uint8_t* bytes, size_t first, size_t size, float* to);

// As stored: integers as they are, other types as codes, zero-extended.
void ReadIntegers(DataType type, const uint8_t* bytes, size_t first, size_t size, int32_t* to);

// Rounds each to the nearest value of FLOAT16 or BFLOAT16.
void RoundFloats(DataType precision, float* values, size_t size);

// A pointer to FLOAT elements in place, if they are aligned for it; else null.
inline const float* FloatsInPlace(DataType type, const uint8_t* bytes) {
  const bool aligned = reinterpret_cast<uintptr_t>(bytes) % alignof(float) == 0;
  return type == DataType::kFloat && aligned ? reinterpret_cast<const float*>(bytes) : nullptr;
}

}  // namespace quantd

#endif  // QUANTD_SRC_KERNELS_READ_ELEMENTS_H_
