// Packed elements of any type as numbers of 32 bits, from any element on: also one that begins
// inside a byte.
//
//   float values[8];
//   ReadFloats(DataType::kFloat4E2M1, bytes, /*first=*/3, /*size=*/8, values);
#ifndef QUANTD_SRC_KERNELS_READ_ELEMENTS_H_
#define QUANTD_SRC_KERNELS_READ_ELEMENTS_H_

#include <cstddef>
#include <cstdint>

#include "quantd/data_type.h"

namespace quantd {

// As FLOAT (INT32 rounds). Every NaN is the quiet one of its sign (of either sign where the type
// has none), but in FLOAT, whose bits are copied.
void ReadFloats(DataType type, const uint8_t* bytes, size_t first, size_t size, float* to);

// As they are stored: integers as such, of other types the codes, zero-extended.
void ReadIntegers(DataType type, const uint8_t* bytes, size_t first, size_t size, int32_t* to);

// Each as the nearest value of FLOAT16 or BFLOAT16.
void RoundFloats(DataType precision, float* values, size_t size);

// FLOAT elements where they lie, if a pointer to floats may point there; else null.
inline const float* FloatsInPlace(DataType type, const uint8_t* bytes) {
  const bool aligned = reinterpret_cast<uintptr_t>(bytes) % alignof(float) == 0;
  return type == DataType::kFloat && aligned ? reinterpret_cast<const float*>(bytes) : nullptr;
}

}  // namespace quantd

#endif  // QUANTD_SRC_KERNELS_READ_ELEMENTS_H_
