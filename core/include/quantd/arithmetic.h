// Choices between variants of the arithmetic. Requests name them, plans decide on them, and kernels
// are selected by them.
#ifndef QUANTD_ARITHMETIC_H_
#define QUANTD_ARITHMETIC_H_

#include <cstdint>

namespace quantd {

enum class ZeroPointOrder : uint8_t {
  kAfterRounding,   // ONNX: clamp(rint(x / scale) + zero_point)
  kBeforeRounding,  // oneDNN Graph: clamp(rint(x / scale + zero_point))
};

// How the range of a block treats NaN and infinities.
enum class NonFinite : uint8_t { kReject, kIgnore };

// How x / scale is computed; see core/src/kernels/reciprocal-inl.h for why the first is exact.
enum class Quotient : uint8_t {
  kReciprocal,     // two fused multiply-adds; integers of 8 bits or fewer, FLOAT precision, all
                   // |scale| in [2^-100, 2^76]
  kDivide,         // one IEEE division in FLOAT
  kGivenFloat16,   // divided in FLOAT and rounded to FLOAT16
  kGivenBfloat16,  // divided in FLOAT and rounded to BFLOAT16
};

// How the scale of a block is computed from its range.
enum class ScaleRule : uint8_t {
  kRange,       // (max - min) / (qmax - qmin), with a zero point
  kSymmetric,   // max|x| / largest
  kPowerOfTwo,  // OCP MX: 2^(floor(log2(max|x|)) - emax)
  kTwoLevel,    // NVFP4: FLOAT8E4M3FN of max|x| / 6 / tensor scale
};

// What QuantizeEmbeddings does to each value of a vector; core/EMBEDDINGS.md defines each bit for
// bit.
enum class EmbeddingRecipe : uint8_t {
  kUnspecified,  // an error
  kRanges,       // floor((x - low) / step), with low and step of the dimension
  kUnit,         // [-1, 1] to [-128, 127]
  kDirection,    // x * 127 / the vector's length
  kBits,         // one bit: whether x > 0
};

// Which bit of a byte the first of eight values gets. Unspecified: the highest.
enum class BitOrder : uint8_t { kUnspecified, kMsbFirst, kLsbFirst };

// Whether the bit of the value 0 is 0 (also if unspecified) or 1.
enum class BitThreshold : uint8_t { kUnspecified, kGreater, kGreaterOrEqual };

// The value of an INT8 that contains eight bits: their number minus 128 (also if unspecified), or
// the bits themselves.
enum class SignedBits : uint8_t { kUnspecified, kOffset, kTwosComplement };

}  // namespace quantd

#endif  // QUANTD_ARITHMETIC_H_
