// Reads and writes the code of an element (its stored bits) in packed bytes, and decodes codes.
//
//   uint8_t bytes[2] = {0x21, 0x03};
//   LoadCode(DataType::kUint4, bytes, 2) == 3
//
// Row-major and without padding for every type: packing continues over the flattened tensor.
#ifndef QUANTD_SRC_TYPES_CODES_H_
#define QUANTD_SRC_TYPES_CODES_H_

#include <bit>
#include <cstdint>

#include "quantd/data_type.h"
#include "types/small_float.h"

namespace quantd {

// The code of element `index` in packed bytes: the stored bits, zero-extended. Types below 8 bits
// start at bit `index * bits` of the bytes as one little-endian number; wider ones are little
// endian.
inline uint32_t LoadCode(DataType type, const uint8_t* bytes, int64_t index) {
  const int bits = Info(type).bits;
  if (bits < 8) {
    const int64_t bit = index * bits;
    const int shift = static_cast<int>(bit % 8);
    uint32_t code = uint32_t{bytes[bit / 8]} >> shift;
    if (shift + bits > 8) code |= uint32_t{bytes[bit / 8 + 1]} << (8 - shift);
    return code & ((1u << bits) - 1);
  }
  uint32_t code = 0;
  for (int i = 0; i < bits / 8; ++i) code |= uint32_t{bytes[index * (bits / 8) + i]} << (8 * i);
  return code;
}

// Stores a code without changing neighbouring codes in the same bytes.
inline void StoreCode(DataType type, uint8_t* bytes, int64_t index, uint32_t code) {
  const int bits = Info(type).bits;
  if (bits < 8) {
    const int64_t bit = index * bits;
    const int shift = static_cast<int>(bit % 8);
    const uint32_t mask = ((1u << bits) - 1) << shift;
    const uint32_t wide = (code << shift) & mask;
    uint8_t* const at = bytes + bit / 8;
    at[0] = static_cast<uint8_t>((at[0] & ~mask) | wide);
    if (shift + bits > 8) at[1] = static_cast<uint8_t>((at[1] & ~(mask >> 8)) | (wide >> 8));
    return;
  }
  for (int i = 0; i < bits / 8; ++i) {
    bytes[index * (bits / 8) + i] = static_cast<uint8_t>(code >> (8 * i));
  }
}

// The integer value of a code of an integer type.
inline int64_t DecodeInteger(DataType type, uint32_t code) {
  const DataTypeInfo& info = Info(type);
  const int64_t value = code;
  return value > info.maximum ? value - (int64_t{1} << info.bits) : value;
}

// The value of a code of any type as FLOAT (INT32 is rounded).
inline float DecodeFloat(DataType type, uint32_t code) {
  switch (Info(type).kind) {
    case DataTypeKind::kInteger:
      return static_cast<float>(DecodeInteger(type, code));
    case DataTypeKind::kExponent:
      return DecodeE8M0(static_cast<uint8_t>(code));
    default:
      return type == DataType::kFloat ? std::bit_cast<float>(code)
                                      : DecodeFormat(FormatOf(type), code);
  }
}

}  // namespace quantd

#endif  // QUANTD_SRC_TYPES_CODES_H_
