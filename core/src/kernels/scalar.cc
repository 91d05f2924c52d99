// The scalar table: plain loops over rules/elements.h. All other tables are compared with it, and
// CPUs without AVX2 or NEON use it. Written to be obviously correct, not fast.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "kernels/simd_targets.h"
#include "rules/elements.h"
#include "types/codes.h"
#include "types/small_float.h"

namespace quantd {
namespace {

using rules::ElementRule;

template <typename T>
T Load(const uint8_t* bytes, size_t index) {
  T value;
  std::memcpy(&value, bytes + index * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
void Store(T value, uint8_t* bytes, size_t index) {
  std::memcpy(bytes + index * sizeof(T), &value, sizeof(T));
}

// The entry in the arrays of scales for element i.
template <ScaleMode kMode, typename Tile>
size_t ScaleIndex(const Tile& tile, size_t i) {
  return kMode == ScaleMode::kPerElement ? i : (tile.first + i) / tile.run;
}

// kReciprocal is a division here: the two fused multiply-adds must give the same result.
template <Division kDivision, Encoder kEncoder, ScaleMode kMode>
void Quantize(const QuantizeTile& tile) {
  ElementRule rule;
  rule.output_type = TypeOf(kEncoder);
  rule.precision = PrecisionOf(kDivision);
  rule.multiplies = kDivision == Division::kMultiply;
  if (AddsZeroPoint(kDivision)) {
    rule.zero_point_order = ZeroPointOrder::kBeforeRounding;
  }
  rule.saturate = tile.saturate;
  rule.has_zero_point = tile.zero_point != nullptr;
  rule.minimum = tile.minimum;
  rule.maximum = tile.maximum;
  for (size_t i = 0; i < tile.size; ++i) {
    const size_t k = ScaleIndex<kMode>(tile, i);
    const float zero_point = tile.zero_point == nullptr ? 0.0f : tile.zero_point[k];
    const uint32_t code =
        rules::QuantizeElement(rule, Load<float>(tile.x, i), tile.scale[k], zero_point).code;
    if constexpr (kEncoder == Encoder::kInteger16) {
      Store(static_cast<uint16_t>(code), tile.y, i);
    } else {
      tile.y[i] = static_cast<uint8_t>(code);
    }
  }
}

template <Decoder kDecoder, ScaleMode kMode>
void Dequantize(const DequantizeTile& tile) {
  constexpr DataType kType = TypeOf(kDecoder);
  for (size_t i = 0; i < tile.size; ++i) {
    const size_t k = ScaleIndex<kMode>(tile, i);
    const int32_t zero_point = tile.zero_point == nullptr ? 0 : tile.zero_point[k];
    // One byte per code, even if the type is packed.
    const uint32_t code =
        Info(kType).bits < 8 ? tile.x[i] : LoadCode(kType, tile.x, static_cast<int64_t>(i));
    Store(rules::DequantizeElement(kType, code, tile.scale[k], zero_point), tile.y, i);
  }
}

template <NonFinite kNonFinite, ScaleMode kMode>
bool Range(const RangeTile& tile) {
  bool non_finite = false;
  for (size_t i = 0; i < tile.size; ++i) {
    const size_t k = ScaleIndex<kMode>(tile, i);
    const float x = Load<float>(tile.x, i);
    if (!std::isfinite(x)) {
      non_finite = true;
      continue;
    }
    tile.min[k] = std::min(tile.min[k], x);
    tile.max[k] = std::max(tile.max[k], x);
  }
  return non_finite;
}

void MakeReciprocals(const float* scale, size_t size, float* reciprocal, float* correction) {
  for (size_t i = 0; i < size; ++i) {
    reciprocal[i] = 1 / scale[i];
    correction[i] = std::fma(-reciprocal[i], scale[i], 1.0f) / scale[i];
  }
}

Magnitudes MagnitudesOf(const float* x, size_t size) {
  uint32_t smallest = std::bit_cast<uint32_t>(1.0f);
  uint32_t largest = smallest;
  for (size_t i = 0; i < size; ++i) {
    const auto magnitude = std::bit_cast<uint32_t>(std::fabs(x[i]));
    smallest = std::min(smallest, magnitude);
    largest = std::max(largest, magnitude);
  }
  return {std::bit_cast<float>(smallest), std::bit_cast<float>(largest)};
}

void RangeScales(const float* min, const float* max, size_t size, float steps, float* scale) {
  for (size_t i = 0; i < size; ++i) {
    const float range = max[i] - min[i];
    scale[i] = range == 0 ? 1 : range / steps;
  }
}

void RangeZeroPoints(const float* min, const float* max, const float* scale, size_t size,
                     float minimum, float maximum, float* zero_point) {
  for (size_t i = 0; i < size; ++i) {
    const float wanted = std::clamp(minimum - min[i] / scale[i], minimum, maximum);
    zero_point[i] = max[i] - min[i] == 0 ? 0 : std::nearbyint(wanted);
  }
}

size_t FindNonFinite(const uint8_t* x, size_t size) {
  for (size_t i = 0; i < size; ++i) {
    if (!std::isfinite(Load<float>(x, i))) return i;
  }
  return size;
}

void Float16ToFloat(const uint8_t* x, size_t size, uint8_t* y) {
  for (size_t i = 0; i < size; ++i) Store(DecodeFloat16(Load<uint16_t>(x, i)), y, i);
}
void Bfloat16ToFloat(const uint8_t* x, size_t size, uint8_t* y) {
  for (size_t i = 0; i < size; ++i) Store(DecodeBfloat16(Load<uint16_t>(x, i)), y, i);
}
void Int32ToFloat(const uint8_t* x, size_t size, uint8_t* y) {
  for (size_t i = 0; i < size; ++i) Store(static_cast<float>(Load<int32_t>(x, i)), y, i);
}
void FloatToFloat16(const uint8_t* x, size_t size, uint8_t* y) {
  for (size_t i = 0; i < size; ++i) Store(EncodeFloat16(Load<float>(x, i)), y, i);
}
void FloatToBfloat16(const uint8_t* x, size_t size, uint8_t* y) {
  for (size_t i = 0; i < size; ++i) Store(EncodeBfloat16(Load<float>(x, i)), y, i);
}

template <DataType kType>
void Pack(const uint8_t* codes, size_t size, uint8_t* packed) {
  std::fill_n(packed, (size * Info(kType).bits + 7) / 8, uint8_t{0});
  for (size_t i = 0; i < size; ++i) {
    StoreCode(kType, packed, static_cast<int64_t>(i), codes[i]);
  }
}

template <DataType kType>
void Unpack(const uint8_t* packed, size_t size, uint8_t* codes) {
  for (size_t i = 0; i < size; ++i) {
    const uint32_t code = LoadCode(kType, packed, static_cast<int64_t>(i));
    const bool is_integer = Info(kType).kind == DataTypeKind::kInteger;
    codes[i] = static_cast<uint8_t>(is_integer ? DecodeInteger(kType, code) : int64_t{code});
  }
}

template <Division kDivision, Encoder kEncoder>
void SetQuantize(KernelTable& table) {
  auto& kernels = table.quantize[static_cast<size_t>(kDivision)][static_cast<size_t>(kEncoder)];
  kernels[0] = Quantize<kDivision, kEncoder, ScaleMode::kRuns>;
  kernels[1] = Quantize<kDivision, kEncoder, ScaleMode::kPerElement>;
}

template <Decoder kDecoder>
void SetDequantize(KernelTable& table) {
  auto& kernels = table.dequantize[static_cast<size_t>(kDecoder)];
  kernels[0] = Dequantize<kDecoder, ScaleMode::kRuns>;
  kernels[1] = Dequantize<kDecoder, ScaleMode::kPerElement>;
}

template <NonFinite kNonFinite>
void SetRange(KernelTable& table) {
  auto& kernels = table.range[static_cast<size_t>(kNonFinite)];
  kernels[0] = Range<kNonFinite, ScaleMode::kRuns>;
  kernels[1] = Range<kNonFinite, ScaleMode::kPerElement>;
}

}  // namespace

void FillScalarTable(KernelTable& table) {
#define QUANTD_QUANTIZE(division, encoder) SetQuantize<Division::division, Encoder::encoder>(table);
#define QUANTD_DEQUANTIZE(decoder) SetDequantize<Decoder::decoder>(table);
#define QUANTD_RANGE(non_finite) SetRange<NonFinite::non_finite>(table);
#include "kernels/kernels.inc"
  table.make_reciprocals = MakeReciprocals;
  table.find_non_finite = FindNonFinite;
  table.magnitudes = MagnitudesOf;
  table.range_scales = RangeScales;
  table.range_zero_points = RangeZeroPoints;
  table.float16_to_float = Float16ToFloat;
  table.bfloat16_to_float = Bfloat16ToFloat;
  table.int32_to_float = Int32ToFloat;
  table.float_to_float16 = FloatToFloat16;
  table.float_to_bfloat16 = FloatToBfloat16;
  FillScalarErrors(table);
  FillScalarEmbed(table);
  FillScalarBins(table);
  FillScalarLayouts(table);
  table.pack6 = Pack<DataType::kFloat6E2M3>;
  table.pack4 = Pack<DataType::kUint4>;
  table.pack2 = Pack<DataType::kUint2>;
  table.unpack6 = Unpack<DataType::kFloat6E2M3>;
  table.unpack_uint4 = Unpack<DataType::kUint4>;
  table.unpack_int4 = Unpack<DataType::kInt4>;
  table.unpack_uint2 = Unpack<DataType::kUint2>;
  table.unpack_int2 = Unpack<DataType::kInt2>;
}

}  // namespace quantd
