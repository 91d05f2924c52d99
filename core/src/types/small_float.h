// Converts single FLOAT16, BFLOAT16, FLOAT8 (four types), FLOAT6 (two), FLOAT4E2M1 and FLOAT8E8M0
// to and from FLOAT.
//
//   DecodeFormat(kE4M3FnFormat, 0x7E) == 448
//   EncodeFloat8(DataType::kFloat8E4M3Fn, 464, /*saturate=*/false) == 0x7E
//
// This is the specification, not the fast path: one description per format and one encoder for all,
// which rounds half to even on the target's grid, subnormals included.
#ifndef QUANTD_SRC_TYPES_SMALL_FLOAT_H_
#define QUANTD_SRC_TYPES_SMALL_FLOAT_H_

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "quantd/data_type.h"

namespace quantd {

// A sign, an exponent and a mantissa in up to 16 bits. The magnitude is the code without its sign
// bit; larger magnitudes mean larger values, up to `largest`.
struct FloatFormat {
  int bits;
  int mantissa_bits;
  int bias;
  uint32_t largest;      // magnitude of the largest finite value
  uint32_t overflow;     // for too large values and infinities: the magnitude of Inf, or of NaN
  uint32_t nan;          // magnitude of NaN; 0: the format has no NaN
  bool overflow_is_inf;  // whether `overflow` is Inf
  bool signed_specials;  // whether -0 exists and NaN has a sign (not in the FNUZ formats, whose
                         // only special code is the one of -0)
};

inline constexpr FloatFormat kFloat16Format = {16, 10, 15, 0x7BFF, 0x7C00, 0x7E00, true, true};
inline constexpr FloatFormat kBfloat16Format = {16, 7, 127, 0x7F7F, 0x7F80, 0x7FC0, true, true};
inline constexpr FloatFormat kE4M3FnFormat = {8, 3, 7, 0x7E, 0x7F, 0x7F, false, true};
inline constexpr FloatFormat kE4M3FnuzFormat = {8, 3, 8, 0x7F, 0x80, 0x80, false, false};
inline constexpr FloatFormat kE5M2Format = {8, 2, 15, 0x7B, 0x7C, 0x7E, true, true};
inline constexpr FloatFormat kE5M2FnuzFormat = {8, 2, 16, 0x7F, 0x80, 0x80, false, false};
inline constexpr FloatFormat kE2M1Format = {4, 1, 1, 0x7, 0x7, 0, false, true};
inline constexpr FloatFormat kE2M3Format = {6, 3, 1, 0x1F, 0x1F, 0, false, true};
inline constexpr FloatFormat kE3M2Format = {6, 2, 3, 0x1F, 0x1F, 0, false, true};

// REQUIRES: type is one of the formats above.
constexpr const FloatFormat& FormatOf(DataType type) {
  switch (type) {
    case DataType::kFloat16:
      return kFloat16Format;
    case DataType::kBfloat16:
      return kBfloat16Format;
    case DataType::kFloat8E4M3Fn:
      return kE4M3FnFormat;
    case DataType::kFloat8E4M3Fnuz:
      return kE4M3FnuzFormat;
    case DataType::kFloat8E5M2:
      return kE5M2Format;
    case DataType::kFloat8E5M2Fnuz:
      return kE5M2FnuzFormat;
    case DataType::kFloat6E2M3:
      return kE2M3Format;
    case DataType::kFloat6E3M2:
      return kE3M2Format;
    case DataType::kFloat4E2M1:
      return kE2M1Format;
    case DataType::kUnspecified:
    case DataType::kFloat:
    case DataType::kUint8:
    case DataType::kInt8:
    case DataType::kUint16:
    case DataType::kInt16:
    case DataType::kInt32:
    case DataType::kUint4:
    case DataType::kInt4:
    case DataType::kUint2:
    case DataType::kInt2:
    case DataType::kFloat8E8M0:
      break;
  }
  return kE2M1Format;  // not reached
}

// The value of a code. Every NaN becomes the quiet NaN with the code's sign.
inline float DecodeFormat(const FloatFormat& format, uint32_t code) {
  const uint32_t sign_bit = 1u << (format.bits - 1);
  const uint32_t magnitude = code & (sign_bit - 1);
  const float sign = (code & sign_bit) != 0 ? -1.0f : 1.0f;
  if (!format.signed_specials && code == sign_bit) return std::numeric_limits<float>::quiet_NaN();
  if (magnitude > format.largest) {
    const bool infinite = format.overflow_is_inf && magnitude == format.overflow;
    return std::copysign(
        infinite ? std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN(),
        sign);
  }
  const int exponent = static_cast<int>(magnitude >> format.mantissa_bits);
  const int hidden = exponent == 0 ? 0 : 1 << format.mantissa_bits;
  const int mantissa = static_cast<int>(magnitude & ((1u << format.mantissa_bits) - 1)) + hidden;
  const int power = (exponent == 0 ? 1 : exponent) - format.bias - format.mantissa_bits;
  // 2^power, as a double, because BFLOAT16 includes values below FLOAT's normal numbers.
  const double unit = std::bit_cast<double>(static_cast<uint64_t>(power + 1023) << 52);
  return sign * static_cast<float>(mantissa * unit);
}

// The magnitude of |value| rounded half to even as if exponents were unlimited: larger than
// format.largest if it is out of range, infinities included. REQUIRES: value is not NaN.
inline uint32_t RoundedMagnitude(const FloatFormat& format, float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(std::fabs(value));
  const int shift = 23 - format.mantissa_bits;  // mantissa bits to drop
  const uint32_t rebias = static_cast<uint32_t>(127 - format.bias);
  const uint32_t smallest_normal = (rebias + 1) << 23;
  if (bits >= smallest_normal || rebias == 0) {
    // Add just under half of the dropped bits, or half if that makes the last bit even. A carry
    // moves into the exponent by itself. (BFLOAT16 has FLOAT's exponents, so its subnormals are
    // handled here.)
    const uint32_t half = (1u << (shift - 1)) - 1 + ((bits >> shift) & 1);
    return ((bits + half) >> shift) - (rebias << format.mantissa_bits);
  }
  // A subnormal is a multiple of 2^(1 - bias - mantissa_bits). At 2^23 times that unit, FLOATs are
  // one unit apart, so the addition rounds.
  const float anchor = std::bit_cast<float>((rebias + 1 + static_cast<uint32_t>(shift)) << 23);
  return std::bit_cast<uint32_t>(std::fabs(value) + anchor) - std::bit_cast<uint32_t>(anchor);
}

// The code of a value. `saturate`: values that are too large, and infinities, become the largest
// finite value; otherwise `overflow`. NaN keeps its sign if the format has a signed NaN; a format
// without NaN converts it to 0 of the opposite sign (FLOAT4E2M1: code 8, FLOAT6: 32; for a negative
// NaN 0).
inline uint32_t EncodeFormat(const FloatFormat& format, float value, bool saturate) {
  const uint32_t sign_bit = 1u << (format.bits - 1);
  const uint32_t sign = std::signbit(value) ? sign_bit : 0;
  if (std::isnan(value)) {
    if (format.nan == 0) return sign ^ sign_bit;
    return format.signed_specials ? (format.nan | sign) : format.nan;
  }
  uint32_t magnitude = RoundedMagnitude(format, value);
  if (magnitude > format.largest) {
    if (!saturate) return format.signed_specials ? (format.overflow | sign) : format.overflow;
    magnitude = format.largest;
  }
  if (magnitude == 0 && !format.signed_specials) return 0;
  return magnitude | sign;
}

// Whether rounding makes a value larger than the format's largest finite value. Never for NaN.
inline bool Overflows(const FloatFormat& format, float value) {
  return !std::isnan(value) && RoundedMagnitude(format, value) > format.largest;
}

inline float DecodeFloat16(uint16_t code) { return DecodeFormat(kFloat16Format, code); }
inline float DecodeBfloat16(uint16_t code) {
  return std::bit_cast<float>(static_cast<uint32_t>(code) << 16);
}
// Overflow gives Inf, as in IEEE 754.
inline uint16_t EncodeFloat16(float value) {
  return static_cast<uint16_t>(EncodeFormat(kFloat16Format, value, false));
}
inline uint16_t EncodeBfloat16(float value) {
  return static_cast<uint16_t>(EncodeFormat(kBfloat16Format, value, false));
}

// REQUIRES: type is one of the four FLOAT8 with a mantissa.
inline uint8_t EncodeFloat8(DataType type, float value, bool saturate) {
  return static_cast<uint8_t>(EncodeFormat(FormatOf(type), value, saturate));
}

// FLOAT8E8M0: 2^(code - 127); 00 is 2^-127, a FLOAT denormal; FF is NaN.
inline float DecodeE8M0(uint8_t code) {
  if (code == 0xFF) return std::numeric_limits<float>::quiet_NaN();
  return std::bit_cast<float>(code == 0 ? 0x00400000u : uint32_t{code} << 23);
}

// A value rounded to FLOAT (unchanged), FLOAT16 or BFLOAT16.
inline float RoundTo(DataType precision, float value) {
  if (precision == DataType::kFloat16) return DecodeFloat16(EncodeFloat16(value));
  if (precision == DataType::kBfloat16) return DecodeBfloat16(EncodeBfloat16(value));
  return value;
}

}  // namespace quantd

#endif  // QUANTD_SRC_TYPES_SMALL_FLOAT_H_
