// The four recipes for one value of an embedding at a time, written directly from
// core/EMBEDDINGS.md. The fast kernels are compared with this file bit for bit.
#ifndef QUANTD_SRC_RULES_EMBEDDINGS_H_
#define QUANTD_SRC_RULES_EMBEDDINGS_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "quantd/arithmetic.h"

namespace quantd::rules {

struct EmbeddingCode {
  uint8_t code = 0;        // the byte as it is stored
  bool saturated = false;  // the value before the clamp is outside the codes; never NaN
};

// INT8 codes are UINT8 codes minus 128: the same bits with the sign bit flipped.
inline constexpr uint8_t kSignFlip = 0x80;

// ---- A vector's length --------------------------------------------------------------------------

// Dimension i is added to sum i mod 16, so that vectors of any width add in the same order. Squares
// of FLOATs are exact in double.
inline constexpr size_t kSquareSums = 16;

struct Squares {
  double sums[kSquareSums] = {};

  void Add(float x, size_t dimension) {
    sums[dimension % kSquareSums] += static_cast<double>(x) * static_cast<double>(x);
  }
  double Length() const {
    double s[kSquareSums];
    for (size_t j = 0; j < kSquareSums; ++j) s[j] = sums[j];
    for (size_t half = kSquareSums / 2; half > 0; half /= 2) {
      for (size_t j = 0; j < half; ++j) s[j] += s[j + half];
    }
    return std::sqrt(s[0]);
  }
};

// Whether a vector can be divided by its length. If not, it is unchanged.
inline bool IsLength(double length) {
  return length > 0 && length < std::numeric_limits<double>::infinity();
}
inline float Normalized(float x, double length) {
  return static_cast<float>(static_cast<double>(x) / length);
}

// ---- Recipes ------------------------------------------------------------------------------------

// RANGES. A dimension of width 0, or with a width that is lost in the division, has step 1.
inline float RangeStep(float low, float high) {
  const float step = (high - low) / 255;
  return step == 0 ? 1 : step;
}
// As UINT8; NaN gives the lowest code.
inline EmbeddingCode RangeCode(float x, float low, float step) {
  const float q = std::floor((x - low) / step);
  if (std::isnan(q)) return {0, false};
  if (q < 0) return {0, true};
  if (q > 255) return {255, true};
  return {static_cast<uint8_t>(q), false};
}

// UNIT, whose step is the FLOAT nearest to 2/255. As INT8; NaN gives 127.
inline constexpr double kUnitStep = static_cast<float>(2.0 / 255);
inline EmbeddingCode UnitCode(float x) {
  const double v = (static_cast<double>(x) + 1) / kUnitStep - 128;
  if (std::isnan(v)) return {127, false};
  if (v < -128) return {kSignFlip, true};
  if (v > 127) return {127, true};
  return {static_cast<uint8_t>(static_cast<int8_t>(v)), false};
}

// DIRECTION, as INT8. All codes of a vector without a length are 0.
inline EmbeddingCode DirectionCode(float x, double length) {
  if (!IsLength(length)) return {0, false};
  // The product is exact.
  const double v = static_cast<double>(x) * 127 / length;
  if (std::isnan(v)) return {0, false};
  return {static_cast<uint8_t>(static_cast<int8_t>(std::fmin(std::fmax(v, -127), 127))), false};
}

// BITS: the bit of a value, and its place in the byte.
inline bool Bit(float x, bool greater_or_equal) { return greater_or_equal ? x >= 0 : x > 0; }
inline uint8_t BitOf(size_t dimension, bool lsb_first) {
  return static_cast<uint8_t>(lsb_first ? 1u << dimension % 8 : 0x80u >> dimension % 8);
}

// ---- Decoding, for the error report -------------------------------------------------------------

// `flip` as in EmbedTile.
inline double DequantizeRange(uint8_t code, uint8_t flip, float low, float step) {
  return static_cast<double>(code ^ flip) * static_cast<double>(step) + static_cast<double>(low);
}
inline double DequantizeUnit(uint8_t code) {
  return (static_cast<double>(static_cast<int8_t>(code)) + 128) * kUnitStep - 1;
}
inline double DequantizeDirection(uint8_t code, double length) {
  if (!IsLength(length)) return 0;
  return static_cast<double>(static_cast<int8_t>(code)) * length / 127;
}

}  // namespace quantd::rules

#endif  // QUANTD_SRC_RULES_EMBEDDINGS_H_
