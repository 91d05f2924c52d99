// Weights in the layouts of other software (quantd/layout.h): scales and codes, one at a time,
// written directly from core/LAYOUTS.md. The fast kernels are compared with this file bit for bit.
//
// "In T": computed in FLOAT and rounded to T, the weight's type, after every operation.
#ifndef QUANTD_SRC_RULES_LAYOUTS_H_
#define QUANTD_SRC_RULES_LAYOUTS_H_

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "quantd/data_type.h"
#include "types/small_float.h"

namespace quantd::rules {

inline constexpr float kE4M3Largest = 448;
inline constexpr float kE2M1Largest = 6;

// ---- compressed-tensors -------------------------------------------------------------------------

// The minimum and maximum of a block and 0.
struct BlockRange {
  float low = 0;
  float high = 0;

  void Include(float x) {
    low = std::min(low, x);
    high = std::max(high, x);
  }
  float largest() const { return std::fabs(std::max(high, -low)); }
};

// The distance from 1 to the next number of T.
constexpr float EpsilonOf(DataType type) {
  if (type == DataType::kFloat16) return 0x1p-10f;
  return type == DataType::kBfloat16 ? 0x1p-7f : 0x1p-23f;
}
constexpr float SmallestNormalOf(DataType type) {
  return type == DataType::kFloat16 ? 0x1p-14f : 0x1p-126f;
}

// A symmetric scale is the largest magnitude divided by this: half of the steps between codes, or
// the largest code.
inline constexpr float kInt8Divisor = 127.5f;
inline constexpr float kInt4Divisor = 7.5f;
inline constexpr float kFp8Divisor = kE4M3Largest;

// The scale, a T; 0 is replaced by the epsilon.
inline float ScaleOrEpsilon(DataType type, float scale) {
  return scale == 0 ? EpsilonOf(type) : scale;
}
inline float SymmetricScale(DataType type, float largest, float divisor) {
  return ScaleOrEpsilon(type, RoundTo(type, largest / divisor));
}

// int4-*-asym. The scale before 0 is replaced by the epsilon; infinite if the range overflows T.
inline float RangeScale(DataType type, const BlockRange& range) {
  return RoundTo(type, RoundTo(type, range.high - range.low) / 15);
}
// `scale` is the result of RangeScale.
inline float ZeroPoint(DataType type, const BlockRange& range, float scale) {
  const float shift = RoundTo(type, range.low / scale);
  const float wanted = RoundTo(type, -8 - shift);
  if (std::isnan(wanted)) return 0;
  return std::nearbyint(std::clamp(wanted, -8.0f, 7.0f));
}

inline float Quotient(DataType type, float x, float scale) { return RoundTo(type, x / scale); }

inline uint32_t FloatingCode8(float value) {
  return EncodeFormat(kE4M3FnFormat, value, /*saturate=*/true);
}

// nvfp4: the tensor's scale as stored in the file.
inline float GlobalScale(DataType type, float largest) {
  const float reciprocal = RoundTo(type, 1 / std::max(largest, SmallestNormalOf(type)));
  const float scale = RoundTo(type, reciprocal * 2688);
  return std::isfinite(scale) ? scale : 1;
}
// nvfp4: the code of a group's scale.
inline uint32_t GroupScaleCode(DataType type, float largest, float global) {
  const uint32_t code = FloatingCode8(global * RoundTo(type, largest / kE2M1Largest));
  constexpr uint32_t kEighth = 0x20;
  return code == 0 ? kEighth : code;
}
// nvfp4: the divisor of the elements of a group.
inline float GroupDivisor(uint32_t code, float global) {
  return DecodeFormat(kE4M3FnFormat, code) / global;
}

// mxfp4: the code of a group's scale, 2^(code - 127), and the divisor of its elements, in T.
struct MxScale {
  uint8_t code = 0;
  float divisor = 1;
};
// As FLOAT; 255 is infinite.
inline float PowerOfCode(uint8_t code) {
  return code == 0 ? 0x1p-127f : std::bit_cast<float>(uint32_t{code} << 23);
}
inline MxScale MxScaleOf(DataType type, float largest) {
  // The power of two below 8/7 of the largest, by a carry in the bits of T; 0 for denormals.
  float power;
  if (type == DataType::kFloat16) {
    const uint32_t bits = EncodeFormat(kFloat16Format, largest, false) + (1u << (10 - 2));
    power = DecodeFloat16(static_cast<uint16_t>(bits & 0x7C00));
  } else {
    const int bit = type == DataType::kBfloat16 ? 16 + 7 - 2 : 23 - 2;
    power = std::bit_cast<float>((std::bit_cast<uint32_t>(largest) + (1u << bit)) & 0x7F800000);
  }
  // The package's result for an infinite scale.
  if (std::isinf(power)) return {127, power};
  const int exponent = static_cast<int>(std::bit_cast<uint32_t>(power) >> 23);
  const auto code = static_cast<uint8_t>(std::max(exponent - 2, 0));
  // 2^(code - 127) is 0 in FLOAT16, and then 1 is used.
  if (type == DataType::kFloat16 && code < 103) return {127, 1};
  return {code, PowerOfCode(code)};
}

// ---- fp8-tiles ----------------------------------------------------------------------------------

// The factor for the elements of a tile, and its reciprocal, which is stored.
inline float TileFactor(float largest) {
  const float factor = 1 / largest * kE4M3Largest;
  return largest == 0 || std::isinf(factor) ? 1 : factor;
}
inline float TileScale(float factor) { return 1 / factor; }

// ---- gguf ---------------------------------------------------------------------------------------

inline constexpr int kGgufBlock = 32;

inline float Reciprocal(float d) { return d == 0 ? 0 : 1 / d; }

// A code by truncation: the low byte of the integer part; NaN and infinities give 0.
inline uint32_t Truncated(float value) {
  if (!(std::fabs(value) < 0x1p31f)) return 0;
  return static_cast<uint32_t>(static_cast<int32_t>(value)) & 0xFF;
}
// Rounds half away from zero.
inline int8_t RoundedAway(float value) {
  if (!std::isfinite(value)) return 0;
  const float magnitude = std::fabs(value);
  const float whole = std::floor(magnitude);
  const float rounded = whole + std::floor(2 * (magnitude - whole));
  return static_cast<int8_t>(static_cast<int32_t>(std::copysign(rounded, value)));
}

// If the smallest or largest element of a block is 0, there may be zeros of both signs. The first
// of these positions with a zero decides: numpy's order on AVX-512.
inline constexpr uint8_t kZeroOrder[kGgufBlock] = {31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21,
                                                   20, 19, 18, 17, 4,  0,  12, 8,  16, 2,  10,
                                                   6,  14, 3,  11, 7,  15, 1,  9,  5,  13};
inline float ZeroOf(const float* block) {
  for (const uint8_t i : kZeroOrder) {
    if (block[i] == 0) return block[i];
  }
  return 0;
}
inline float SmallestOf(const float* block) {
  const float smallest = *std::min_element(block, block + kGgufBlock);
  return smallest == 0 ? ZeroOf(block) : smallest;
}
inline float LargestOf(const float* block) {
  const float largest = *std::max_element(block, block + kGgufBlock);
  return largest == 0 ? ZeroOf(block) : largest;
}
// The first element with the largest magnitude.
inline float ExtremeOf(const float* block) {
  return *std::max_element(block, block + kGgufBlock,
                           [](float a, float b) { return std::fabs(a) < std::fabs(b); });
}

// mxfp4: the code e of a block, whose unit is 2^(e - 128), from the largest magnitude: floor(log2),
// log2 as FLOAT. That is a whole number already if the magnitude is slightly below a power of two:
// log2 of the float `steps` below 2^k is k - steps * 2^-24 / ln 2, and rounds to k up to half
// of the distance from k to its neighbour towards 0 (k < 0: away from it), which is 2^(b - 24) with
// b the exponent of the numbers between them.
inline uint32_t Log2Steps(int k) {
  if (k == 0) return 0;
  const double between = k > 0 ? k - 0.25 : -k;
  return static_cast<uint32_t>(std::ldexp(0.693147180559945309417, std::ilogb(between)));
}
// `steps`: Log2Steps of the exponent above, which a kernel may have in a table.
template <typename Steps>
uint8_t GgufExponentBy(float largest, const Steps& steps) {
  if (largest < 0x1p-125f) return 0;
  const auto bits = std::bit_cast<uint32_t>(largest);
  const int exponent = static_cast<int>(bits >> 23) - 127;
  const uint32_t raised = bits + steps(exponent + 1);
  return static_cast<uint8_t>(static_cast<int>(raised >> 23) - 127 + 125);
}
inline uint8_t GgufExponent(float largest) { return GgufExponentBy(largest, Log2Steps); }
// 2^(code - 128); the first two are denormal.
inline float GgufUnit(uint8_t code) {
  return std::bit_cast<float>(code < 2 ? 0x00200000u << code : (code - 1u) << 23);
}
inline constexpr int8_t kGgufValues[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
inline uint32_t GgufNearest(float x, float unit) {
  uint32_t best = 0;
  float least = std::numeric_limits<float>::infinity();
  for (uint32_t code = 0; code < 16; ++code) {
    const float error = std::fabs(unit * static_cast<float>(kGgufValues[code]) - x);
    if (error < least) {
      least = error;
      best = code;
    }
  }
  return best;
}

// ---- bitsandbytes -------------------------------------------------------------------------------

inline constexpr int kBnbBlock = 64;
inline constexpr int kBnbNestedBlock = 256;

// The values of the codes.
inline constexpr float kNf4[16] = {
    -1.0f,
    -0.6961928009986877f,
    -0.5250730514526367f,
    -0.39491748809814453f,
    -0.28444138169288635f,
    -0.18477343022823334f,
    -0.09105003625154495f,
    0.0f,
    0.07958029955625534f,
    0.16093020141124725f,
    0.24611230194568634f,
    0.33791524171829224f,
    0.44070982933044434f,
    0.5626170039176941f,
    0.7229568362236023f,
    1.0f,
};
inline constexpr float kFp4[16] = {
    0, 0.0625f / 12,  8.0f / 12,  1,  4.0f / 12,  6.0f / 12,  2.0f / 12,  3.0f / 12,
    0, -0.0625f / 12, -8.0f / 12, -1, -4.0f / 12, -6.0f / 12, -2.0f / 12, -3.0f / 12,
};
// A map as it is used: the second zero of FP4 is negative.
inline void SetFp4Signs(std::array<float, 16>& map) {
  if (map[8] == 0) map[8] = -0.0f;
}
// The codes sorted by value. fp4: 8, also a zero, comes right after 0.
inline constexpr uint8_t kNf4Order[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
inline constexpr uint8_t kFp4Order[16] = {11, 10, 13, 12, 15, 14, 9, 0, 8, 1, 6, 7, 4, 5, 2, 3};

struct Table4 {
  const float* values;
  const uint8_t* order;

  // The middle between the values at `i` and `i + 1` of the order.
  float Middle(int i) const { return (values[order[i]] + values[order[i + 1]]) / 2; }
  uint32_t Code(float y) const {
    int below = 0;
    for (int i = 0; i < 15; ++i) below += Middle(i) < y;
    return order[below];
  }
};
inline constexpr Table4 kNf4Table = {kNf4, kNf4Order};
inline constexpr Table4 kFp4Table = {kFp4, kFp4Order};

inline constexpr float kLeastAbsmax = 1e-38f;
// For a whole block, and for a shorter one at the end, whose absmax is never 0.
inline float WholeBlockValue(float x, float absmax) {
  return std::clamp(x * (1 / std::max(absmax, kLeastAbsmax)), -1.0f, 1.0f);
}
inline float LastBlockAbsmax(float absmax) { return std::max(absmax, kLeastAbsmax); }
inline float LastBlockValue(float x, float absmax) { return std::clamp(x / absmax, -1.0f, 1.0f); }

// The map of -double's 8-bit codes: 0, 1 and both signs of 7 decades, each with the means of
// neighbouring points on a line.
std::array<float, 256> MakeNestedMap();
// Its codes are found by steps of [-1, 1], of which there are 65,536: the step of v in a block
// whose largest |v| is `largest` (not 0), and the code of a step. A block of zeros has code 0. If 1
// / largest is infinite, 0 becomes NaN, which has step 0.
inline constexpr int kNestedSteps = 65536;
inline int NestedStep(float v, float largest) {
  const float y = std::clamp(v * (1 / largest), -1.0f, 1.0f);
  if (std::isnan(y)) return 0;
  const float step = (y + 1) * 32767.5f + 0.5f;
  return static_cast<int>(step);
}
uint8_t NestedCode(const std::array<float, 256>& map, int step);

// int8: the factor for a row of FLOAT16, and the factor back.
inline float RowFactor(float largest) { return largest == 0 ? 0 : 1 / largest * 127; }
inline constexpr float kRowUnit = 0.007874015718698502f;

}  // namespace quantd::rules

#endif  // QUANTD_SRC_RULES_LAYOUTS_H_
