// Elements of a weight's type: as FLOAT in pieces that stay in the first-level cache, and single
// ones.
#ifndef QUANTD_SRC_LAYOUTS_PIECES_H_
#define QUANTD_SRC_LAYOUTS_PIECES_H_

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/find_kernel.h"
#include "kernels/kernel_table.h"
#include "types/small_float.h"

namespace quantd {

// Elements of a piece: 4 KiB of FLOAT. A multiple of every group and block.
inline constexpr size_t kPiece = 1024;

// Converts pieces to FLOAT. FLOAT elements are not copied.
class FloatPiece {
 public:
  FloatPiece(const KernelTable& kernels, DataType type) : to_float_(ToFloat(kernels, type)) {}

  // REQUIRES: size <= kPiece.
  const uint8_t* Load(const uint8_t* x, size_t size) {
    if (to_float_ == nullptr) return x;
    to_float_(x, size, bytes_.data());
    return bytes_.data();
  }

 private:
  ConvertTile to_float_;
  alignas(64) std::array<uint8_t, kPiece * sizeof(float)> bytes_;
};

// Writes one FLOAT, FLOAT16 or BFLOAT16 element. REQUIRES: the type can represent the value.
inline void StoreElement(DataType type, float value, uint8_t* y) {
  if (type == DataType::kFloat) {
    std::memcpy(y, &value, sizeof(value));
    return;
  }
  const uint16_t code = type == DataType::kFloat16 ? EncodeFloat16(value) : EncodeBfloat16(value);
  std::memcpy(y, &code, sizeof(code));
}
inline float LoadElement(DataType type, const uint8_t* x) {
  if (type == DataType::kFloat) {
    float value;
    std::memcpy(&value, x, sizeof(value));
    return value;
  }
  uint16_t code;
  std::memcpy(&code, x, sizeof(code));
  return type == DataType::kFloat16 ? DecodeFloat16(code) : DecodeBfloat16(code);
}

// Finds the largest magnitude in some rows of elements.
class Largest {
 public:
  Largest(const KernelTable& kernels, DataType type)
      : type_(type), kernel_(type == DataType::kFloat ? kernels.largest32 : kernels.largest16) {}

  // NaN or infinite if an element is. `stride`: bytes from one row to the next.
  float operator()(const uint8_t* x, size_t rows, size_t size, size_t stride) const {
    const uint32_t bits = kernel_(x, rows, size, stride);
    switch (type_) {
      case DataType::kFloat:
        return std::bit_cast<float>(bits);
      case DataType::kFloat16:
        return DecodeFloat16(static_cast<uint16_t>(bits));
      default:
        return std::bit_cast<float>(bits << 16);
    }
  }
  float operator()(const uint8_t* x, size_t size) const { return (*this)(x, 1, size, 0); }

 private:
  DataType type_;
  uint32_t (*kernel_)(const uint8_t*, size_t, size_t, size_t);
};

}  // namespace quantd

#endif  // QUANTD_SRC_LAYOUTS_PIECES_H_
