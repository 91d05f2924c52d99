// The loops over elements as function pointers: one table per target (AVX-512, AVX2, NEON, scalar),
// all with the same results bit for bit.
//
//   const KernelTable& kernels = Kernels();  // once, where a plan is executed
//   FindQuantize(kernels, ...)(tile);        // find_kernel.h
//
// Kernels get contiguous pieces of a tensor ("tiles") of any length, including 0, at any alignment:
// pointers to elements are byte pointers. FLOAT tensors are passed as they are in memory, in pieces
// as long as possible (a call costs some 20 ns). FLOAT16, BFLOAT16 and INT32 are converted in a
// float tile of 1,024 elements on the stack (to_float), and 6-, 4- and 2-bit codes in a tile of one
// byte per code (pack, unpack). Nothing here allocates, fails or keeps state; everything is
// thread-safe. Input and output never overlap.
#ifndef QUANTD_SRC_KERNELS_KERNEL_TABLE_H_
#define QUANTD_SRC_KERNELS_KERNEL_TABLE_H_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "quantd/arithmetic.h"
#include "quantd/data_type.h"
#include "quantd/quantization_error.h"

namespace quantd {

// How the scale of an element of a tile is found.
enum class ScaleMode : uint8_t {
  kRuns,        // `run` neighbours share one: element i uses entry (first + i) / run
  kPerElement,  // element i uses entry i
};
inline constexpr size_t kScaleModes = 2;

// How x / scale is computed: arithmetic.h's Quotient, and the order of the zero point. kMultiply
// and the following are for layouts (rules/layouts.h).
enum class Division : uint8_t {
  kReciprocal,            // two fused multiply-adds; kInteger8 only
  kDivide,                // x / scale
  kDivideFloat16,         // x rounded to FLOAT16, and the quotient too
  kDivideBfloat16,        // x rounded to BFLOAT16, and the quotient too
  kDivideAndAdd,          // x / scale + zero point, before rounding (oneDNN); integers only
  kMultiply,              // x * scale
  kDivideAndAddFloat16,   // kDivideFloat16 and the zero point, their sum rounded to FLOAT16
  kDivideAndAddBfloat16,  // the same in BFLOAT16
};
inline constexpr size_t kDivisions = 8;

// The type to which x, the quotient and a sum are rounded.
constexpr DataType PrecisionOf(Division division) {
  switch (division) {
    case Division::kDivideFloat16:
    case Division::kDivideAndAddFloat16:
      return DataType::kFloat16;
    case Division::kDivideBfloat16:
    case Division::kDivideAndAddBfloat16:
      return DataType::kBfloat16;
    default:
      return DataType::kFloat;
  }
}
// Whether a division adds the zero point itself.
constexpr bool AddsZeroPoint(Division division) {
  return division == Division::kDivideAndAdd || division == Division::kDivideAndAddFloat16 ||
         division == Division::kDivideAndAddBfloat16;
}

// The format of a code: integers by width, not by type.
enum class Encoder : uint8_t {
  kInteger8,   // bounds within [-128, 127] or [0, 255]; 4- and 2-bit integers too. 1 byte per code
  kInteger16,  // bounds within [-32768, 32767] or [0, 65535]; two bytes per code
  kFloat8E4M3Fn,
  kFloat8E4M3Fnuz,
  kFloat8E5M2,
  kFloat8E5M2Fnuz,
  kFloat4E2M1,  // one byte per code, 0 to 15
  kFloat6E2M3,  // one byte per code, 0 to 63
  kFloat6E3M2,
};
// The type of the codes that an encoder writes; for integers the signed type of that width.
inline constexpr auto kEncoderTypes =
    std::to_array({DataType::kInt8, DataType::kInt16, DataType::kFloat8E4M3Fn,
                   DataType::kFloat8E4M3Fnuz, DataType::kFloat8E5M2, DataType::kFloat8E5M2Fnuz,
                   DataType::kFloat4E2M1, DataType::kFloat6E2M3, DataType::kFloat6E3M2});
inline constexpr size_t kEncoders = kEncoderTypes.size();
static_assert(kEncoders == static_cast<size_t>(Encoder::kFloat6E3M2) + 1);
constexpr DataType TypeOf(Encoder encoder) { return kEncoderTypes[static_cast<size_t>(encoder)]; }

// The format of a code in Dequantize. 4- and 2-bit integers are unpacked to kUint8 or kInt8.
enum class Decoder : uint8_t {
  kUint8,
  kInt8,
  kUint16,
  kInt16,
  kInt32,
  kFloat8E4M3Fn,
  kFloat8E4M3Fnuz,
  kFloat8E5M2,
  kFloat8E5M2Fnuz,
  kFloat4E2M1,  // one byte per code; the upper four bits are ignored
  kFloat6E2M3,  // one byte per code; the upper two bits are ignored
  kFloat6E3M2,
};
// The type of the codes that a decoder reads.
inline constexpr auto kDecoderTypes =
    std::to_array({DataType::kUint8, DataType::kInt8, DataType::kUint16, DataType::kInt16,
                   DataType::kInt32, DataType::kFloat8E4M3Fn, DataType::kFloat8E4M3Fnuz,
                   DataType::kFloat8E5M2, DataType::kFloat8E5M2Fnuz, DataType::kFloat4E2M1,
                   DataType::kFloat6E2M3, DataType::kFloat6E3M2});
inline constexpr size_t kDecoders = kDecoderTypes.size();
static_assert(kDecoders == static_cast<size_t>(Decoder::kFloat6E3M2) + 1);
constexpr DataType TypeOf(Decoder decoder) { return kDecoderTypes[static_cast<size_t>(decoder)]; }

// Whether zero points of these codes are codes themselves, which must be decoded.
constexpr bool IsMiniFloat(Decoder decoder) {
  return Info(TypeOf(decoder)).kind == DataTypeKind::kMiniFloat;
}

// One call of a QuantizeKernel.
struct QuantizeTile {
  const uint8_t* x = nullptr;  // `size` floats
  uint8_t* y = nullptr;        // `size` codes of one byte, or two with Encoder::kInteger16
  size_t size = 0;
  // kRuns: REQUIRES 0 <= first < run. `first` is the offset of the tile in its run. A tile with one
  // scale has any run >= first + size. Ignored by kPerElement.
  size_t first = 0;
  size_t run = SIZE_MAX;
  // One entry per run or per element, in the precision of the division; none is 0, NaN or infinite
  // (kMultiply: any values).
  const float* scale = nullptr;
  // The results of make_reciprocals, for kReciprocal with kPerElement.
  const float* reciprocal = nullptr;
  const float* correction = nullptr;
  // Null: no zero points. For the integer encoders: integers with |value| <= 65535 within the
  // output's range (any finite float for kDivideAndAdd); for FLOAT6 and FLOAT4: any finite float;
  // ignored by FLOAT8.
  const float* zero_point = nullptr;
  // Integer encoders: every code is in [minimum, maximum]. NaN becomes minimum.
  int32_t minimum = 0;
  int32_t maximum = 0;
  bool saturate = true;  // FLOAT8 only
  // A hint: the output is larger than the caches, so bypass them.
  bool stream = false;
};
using QuantizeKernel = void (*)(const QuantizeTile&);

// One call of a DequantizeKernel: y = (x - zero_point) * scale in FLOAT, as in NUMERICS.md.
struct DequantizeTile {
  const uint8_t* x = nullptr;  // `size` codes
  uint8_t* y = nullptr;        // `size` floats
  size_t size = 0;
  size_t first = 0;  // as in QuantizeTile
  size_t run = SIZE_MAX;
  const float* scale = nullptr;         // any values
  const int32_t* zero_point = nullptr;  // null: none. Mini floats: codes. Not for FLOAT8
  bool stream = false;                  // as in QuantizeTile
};
using DequantizeKernel = void (*)(const DequantizeTile&);

// One call of a RangeKernel: widens min[k] and max[k] by the elements with index k, which is found
// like the index of a scale.
struct RangeTile {
  const uint8_t* x = nullptr;  // `size` floats
  size_t size = 0;
  size_t first = 0;
  size_t run = SIZE_MAX;
  float* min = nullptr;  // initially 0, so that min <= 0 <= max
  float* max = nullptr;
  bool fetch = false;  // whether x is beyond the caches
};
// Returns whether an element was NaN or infinite. kIgnore kernels skip such elements; after `true`
// from a kReject kernel the ranges are meaningless.
using RangeKernel = bool (*)(const RangeTile&);

// One call of AddErrors.
struct ErrorTile {
  const uint8_t* x = nullptr;      // `size` floats
  const uint8_t* int32 = nullptr;  // x if it was INT32: FLOAT does not hold all of them
  const uint8_t* codes = nullptr;  // as a QuantizeKernel wrote them
  size_t size = 0;
  ScaleMode mode = ScaleMode::kRuns;
  size_t first = 0;  // as in QuantizeTile
  size_t run = SIZE_MAX;
  Division division = Division::kDivide;  // kReciprocal means the same as kDivide
  Encoder encoder = Encoder::kInteger8;
  Decoder decoder = Decoder::kUint8;        // of the codes
  const float* scale = nullptr;             // of the division
  const float* dequantize_scale = nullptr;  // may be the same
  const float* zero_point = nullptr;        // null: none
  int32_t minimum = 0;                      // integer encoders
  int32_t maximum = 0;
};

// How a value of an embedding is converted: EmbeddingRecipe, and how RANGES divides.
enum class Embedder : uint8_t {
  kRanges,         // every step has a factor (embed_recipes-inl.h)
  kRangesDivided,  // (x - low) / step
  kUnit,
  kDirection,
  kBits,
};
inline constexpr size_t kEmbedders = 5;

// One call of an EmbedKernel: rows of an embedding, or of some of their dimensions.
struct EmbedTile {
  // `rows` times `size` floats; rows begin every `stride` floats.
  const uint8_t* x = nullptr;
  // One byte per value, or with kBits one byte per eight values; rows begin every `y_stride`
  // bytes.
  uint8_t* y = nullptr;
  size_t rows = 1;
  size_t size = 0;
  size_t stride = 0;
  size_t y_stride = 0;
  // Ranges: one entry per value of a row. REQUIRES: finite; step > 0; factor is MakeFactor of step.
  const float* low = nullptr;
  const float* step = nullptr;
  const float* factor = nullptr;   // kRanges only
  const double* length = nullptr;  // kDirection: one per row, any number
  uint8_t flip = 0;                // 0x80 makes INT8 of UINT8, 0 does nothing
  bool lsb_first = false;          // kBits
  bool greater_or_equal = false;   // kBits
};
// Returns whether a value was NaN or infinite. Such values get codes, too.
using EmbedKernel = bool (*)(const EmbedTile&);

// gguf's block types that weights can be encoded to (rules/layouts.h).
enum class GgufBlock : uint8_t { kQ8_0, kQ4_0, kQ4_1, kQ5_0, kQ5_1, kMxfp4 };
inline constexpr size_t kGgufBlocks = 6;
// Encodes whole blocks of 32 finite floats. Returns whether the scale or the minimum of a block is
// too large for FLOAT16.
using GgufKernel = bool (*)(const uint8_t* x, size_t blocks, uint8_t* y);

// bitsandbytes' 4-bit tables.
enum class BnbTable : uint8_t { kNf4, kFp4 };
inline constexpr size_t kBnbTables = 2;
// Encodes whole blocks of 64 finite floats: absmax and 32 bytes of codes each.
using BnbKernel = void (*)(const uint8_t* x, size_t blocks, float* absmax, uint8_t* codes);

struct ErrorLanes;  // error_pieces.h

// The smallest and the largest magnitude of 1 and some floats; NaN counts as larger than infinity.
struct Magnitudes {
  float smallest = 1;
  float largest = 1;

  // REQUIRES: no NaN.
  void Include(const Magnitudes& other) {
    smallest = std::min(smallest, other.smallest);
    largest = std::max(largest, other.largest);
  }
};

struct KernelTable {
  const char* name;  // as in SupportedTargets()
  // Null for combinations without a row in kernels.inc.
  QuantizeKernel quantize[kDivisions][kEncoders][kScaleModes];
  DequantizeKernel dequantize[kDecoders][kScaleModes];
  RangeKernel range[2][kScaleModes];  // [0]: NonFinite::kReject, [1]: kIgnore

  // 1 / scale in two floats, for Division::kReciprocal. REQUIRES: every |scale| in [2^-100, 2^76].
  // Outputs may not overlap the input.
  void (*make_reciprocals)(const float* scale, size_t size, float* reciprocal, float* correction);

  // An invalid scale is visible in one of the two magnitudes.
  Magnitudes (*magnitudes)(const float* x, size_t size);

  // ScaleRule::kRange with a FLOAT scale, as in rules::ScaleMaker: (max - min) / steps, and minimum
  // - min / scale, rounded and clamped to the bounds. A range of only 0 gets scale 1 and zero point
  // 0. REQUIRES: min <= 0 <= max, finite; the scale of a zero point is neither 0 nor infinite.
  // Outputs may be inputs.
  void (*range_scales)(const float* min, const float* max, size_t size, float steps, float* scale);
  void (*range_zero_points)(const float* min, const float* max, const float* scale, size_t size,
                            float minimum, float maximum, float* zero_point);

  // Converts `size` elements to floats and back. Rounds half to even; a NaN remains a NaN of the
  // same sign.
  void (*float16_to_float)(const uint8_t* x, size_t size, uint8_t* y);
  void (*bfloat16_to_float)(const uint8_t* x, size_t size, uint8_t* y);
  void (*int32_to_float)(const uint8_t* x, size_t size, uint8_t* y);
  void (*float_to_float16)(const uint8_t* x, size_t size, uint8_t* y);
  void (*float_to_bfloat16)(const uint8_t* x, size_t size, uint8_t* y);

  // Packs and unpacks codes of one byte. `size` counts codes; element 0 is in the low bits of byte
  // 0; pack clears unused high bits of the last byte, and ignores the upper bits of codes.
  void (*pack6)(const uint8_t* codes, size_t size, uint8_t* packed);
  void (*pack4)(const uint8_t* codes, size_t size, uint8_t* packed);
  void (*pack2)(const uint8_t* codes, size_t size, uint8_t* packed);
  void (*unpack6)(const uint8_t* packed, size_t size, uint8_t* codes);
  void (*unpack_uint4)(const uint8_t* packed, size_t size, uint8_t* codes);
  void (*unpack_int4)(const uint8_t* packed, size_t size, uint8_t* codes);
  void (*unpack_uint2)(const uint8_t* packed, size_t size, uint8_t* codes);
  void (*unpack_int2)(const uint8_t* packed, size_t size, uint8_t* codes);

  // The index of the first NaN or infinity among `size` floats, or `size`.
  size_t (*find_non_finite)(const uint8_t* x, size_t size);

  EmbedKernel embed[kEmbedders];
  // Adds the squares of `size` floats to 16 sums, as rules::Squares does. The dimension of the
  // first float is a multiple of 16.
  void (*add_squares)(const uint8_t* x, size_t size, double* sums);
  // Divides `size` floats by a length in double. REQUIRES: rules::IsLength(length). y may be x.
  void (*normalize)(const uint8_t* x, size_t size, double length, uint8_t* y);
  // Calibration (rules/bins.h). The first two widen ranges by finite elements (+Inf and -Inf if
  // none were seen; the sign of a 0 is unspecified), one range for all elements, or low[i] and
  // high[i] for element i. They return how many elements were not finite, or whether any was. The
  // others write the slot of each element; find_slots in any order, which does not affect counts.
  size_t (*find_extremes)(const uint8_t* x, size_t size, float* low, float* high);
  bool (*find_extremes_each)(const uint8_t* x, size_t size, float* low, float* high);
  void (*find_slots)(const uint8_t* x, size_t size, uint16_t floor, uint16_t* slots);
  void (*find_slots_each)(const uint8_t* x, size_t size, const uint16_t* floors, uint16_t* slots);

  // Layouts. The bits of the largest magnitude (without signs) among `rows` times `size` elements
  // of 2 or 4 bytes; the bits of NaN are larger than those of infinity. Rows begin every `stride`
  // bytes.
  uint32_t (*largest16)(const uint8_t* x, size_t rows, size_t size, size_t stride);
  uint32_t (*largest32)(const uint8_t* x, size_t rows, size_t size, size_t stride);
  GgufKernel gguf[kGgufBlocks];
  BnbKernel bnb[kBnbTables];

  // Called by AddErrors.
  void (*add_errors)(const ErrorTile& tile, ErrorLanes& lanes);
};

// The table of CurrentTarget() (quantd/targets.h).
const KernelTable& Kernels();

// The table of a target by name, or nullptr if this CPU or build does not support it.
const KernelTable* FindKernels(const char* name);

// Whether Division::kReciprocal is exact for a scale (reciprocal-inl.h).
inline bool HasReciprocal(float scale) {
  return std::fabs(scale) >= 0x1p-100f && std::fabs(scale) <= 0x1p76f;
}
inline bool HasReciprocal(Magnitudes scales) {
  return HasReciprocal(scales.smallest) && HasReciprocal(scales.largest);
}
// Whether a scale can divide.
inline bool IsDivisor(float scale) { return scale != 0 && std::fabs(scale) < INFINITY; }
inline bool IsDivisor(Magnitudes scales) {
  return IsDivisor(scales.smallest) && IsDivisor(scales.largest);
}

// Whether Embedder::kRanges is exact for a step, and the factor that it multiplies by.
inline bool HasFactor(float step) { return step >= 0x1p-100f && step <= 0x1p100f; }
inline float MakeFactor(float step) { return 65536 / step; }

// Adds a tile's contribution to the error report (quantization_error.h); the same bits on every
// target.
void AddErrors(const KernelTable& table, const ErrorTile& tile, ErrorSums& sums);
inline void AddErrors(const ErrorTile& tile, ErrorSums& sums) { AddErrors(Kernels(), tile, sums); }

}  // namespace quantd

#endif  // QUANTD_SRC_KERNELS_KERNEL_TABLE_H_
