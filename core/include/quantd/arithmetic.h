// The choices between one arithmetic and another. Requests name them, plans decide on them, and
// kernels are chosen by them.
#ifndef QUANTD_ARITHMETIC_H_
#define QUANTD_ARITHMETIC_H_

#include <cstdint>

namespace quantd {

enum class ZeroPointOrder : uint8_t {
  kAfterRounding,   // ONNX: clamp(rint(x / scale) + zero_point)
  kBeforeRounding,  // oneDNN Graph: clamp(rint(x / scale + zero_point))
};

// What the range of a block makes of NaN and infinities.
enum class NonFinite : uint8_t { kReject, kIgnore };

// How x / scale is computed; see core/src/kernels/reciprocal-inl.h for why the first is exact.
enum class Quotient : uint8_t {
  kReciprocal,     // two fused multiply-adds; integers of 8 bits or fewer, FLOAT precision, all
                   // |scale| in [2^-100, 2^76]
  kDivide,         // one IEEE division in FLOAT
  kGivenFloat16,   // divided in FLOAT and rounded to FLOAT16
  kGivenBfloat16,  // divided in FLOAT and rounded to BFLOAT16
};

// How the scale of a block follows from its range.
enum class ScaleRule : uint8_t {
  kRange,       // (max - min) / (qmax - qmin), with a zero point
  kSymmetric,   // max|x| / largest
  kPowerOfTwo,  // OCP MX: 2^(floor(log2(max|x|)) - emax)
  kTwoLevel,    // NVFP4: FLOAT8E4M3FN of max|x| / 6 / tensor scale
};

// What QuantizeEmbeddings does to each value of a vector; core/EMBEDDINGS.md has each to the bit.
enum class EmbeddingRecipe : uint8_t {
  kUnspecified,  // an error
  kRanges,       // floor((x - low) / step), low and step of its dimension
  kUnit,         // [-1, 1] to [-128, 127]
  kDirection,    // x * 127 / the vector's length
  kBits,         // one bit: whether x > 0
};

// Which bit of a byte the first of eight values has. Unspecified: the highest.
enum class BitOrder : uint8_t { kUnspecified, kMsbFirst, kLsbFirst };

// Whether the bit of 0 is 0 (unspecified: it is) or 1.
enum class BitThreshold : uint8_t { kUnspecified, kGreater, kGreaterOrEqual };

// What an INT8 that holds eight bits is: their number less 128 (unspecified: that), or the bits.
enum class SignedBits : uint8_t { kUnspecified, kOffset, kTwosComplement };

}  // namespace quantd

#endif  // QUANTD_ARITHMETIC_H_
