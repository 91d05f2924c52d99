// gguf's and bitsandbytes' blocks.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "layouts/constants.h"
#include "layouts/encode_region.h"
#include "rules/layouts.h"

namespace quantd {
namespace {

// Calls body(x, values, column, size) for pieces of a region of one row with finite elements;
// `values` are the elements as FLOAT.
template <typename Body>
void ForEachPiece(const Encoding& encoding, const RegionBytes& bytes, const Body& body) {
  const Region& region = bytes.region;
  const Largest largest_of(encoding.kernels, encoding.type());
  FloatPiece piece(encoding.kernels, encoding.type());
  for (int64_t column = 0; column < region.columns; column += kPiece) {
    const auto size = static_cast<size_t>(std::min<int64_t>(region.columns - column, kPiece));
    const uint8_t* const x = bytes.x.row(0) + static_cast<size_t>(column) * encoding.width();
    if (!std::isfinite(largest_of(x, size))) {
      encoding.faults.FindNonFinite(x, static_cast<int64_t>(size), region.column + column);
      return;
    }
    body(x, piece.Load(x, size), column, size);
  }
}

// Both enums have the same order.
GgufBlock BlockOf(Layout layout) {
  constexpr int kFirst = static_cast<int>(Layout::kGgufQ8_0);
  static_assert(static_cast<int>(Layout::kGgufMxfp4) - kFirst ==
                static_cast<int>(GgufBlock::kMxfp4));
  return static_cast<GgufBlock>(static_cast<int>(layout) - kFirst);
}

// Encodes `size` numbers, which are a block of -double; returns the largest magnitude.
float EncodeNested(const float* values, size_t size, uint8_t* codes) {
  float largest = 0;
  for (size_t i = 0; i < size; ++i) largest = std::max(largest, std::fabs(values[i]));
  if (largest == 0) {
    std::memset(codes, 0, size);
    return largest;
  }
  const std::array<uint8_t, rules::kNestedSteps>& code_of = NestedCodes();
  for (size_t i = 0; i < size; ++i) {
    codes[i] = code_of[static_cast<size_t>(rules::NestedStep(values[i], largest))];
  }
  return largest;
}

// The smallest value that FLOAT16 rounds to infinity.
constexpr float kFloat16Overflow = 65520;

}  // namespace

void EncodeGguf(const Encoding& encoding, const RegionBytes& bytes) {
  const GgufKernel kernel =
      encoding.kernels.gguf[static_cast<size_t>(BlockOf(encoding.plan.layout))];
  const auto block_bytes = static_cast<size_t>(Info(encoding.plan.layout).block_bytes);
  constexpr size_t kBlock = rules::kGgufBlock;
  ForEachPiece(
      encoding, bytes, [&](const uint8_t*, const uint8_t* values, int64_t column, size_t size) {
        uint8_t* const y =
            bytes[Role::kCodes].row(0) + static_cast<size_t>(column) / kBlock * block_bytes;
        if (!kernel(values, size / kBlock, y)) return;
        for (size_t begin = 0; begin < size; begin += kBlock) {
          if (!kernel(values + begin * sizeof(float), 1, y + begin / kBlock * block_bytes))
            continue;
          encoding.faults.TooLarge(bytes.region.column + column + static_cast<int64_t>(begin));
          return;
        }
      });
}

void EncodeFloats(const Encoding& encoding, const RegionBytes& bytes) {
  const Layout layout = encoding.plan.layout;
  const Region& region = bytes.region;
  uint8_t* const y = bytes[Role::kCodes].row(0);
  if (layout == Layout::kGgufF32) {
    const ConvertTile convert = ToFloat(encoding.kernels, encoding.type());
    const auto size = static_cast<size_t>(region.columns);
    if (convert != nullptr) {
      convert(bytes.x.row(0), size, y);
    } else {
      std::memcpy(y, bytes.x.row(0), size * sizeof(float));
    }
    return;
  }
  const bool is_float16 = layout == Layout::kGgufF16;
  const DataType output = is_float16 ? DataType::kFloat16 : DataType::kBfloat16;
  const ConvertTile convert = FromFloat(encoding.kernels, output);
  const Largest largest_of(encoding.kernels, DataType::kFloat);
  ForEachPiece(encoding, bytes,
               [&](const uint8_t* x, const uint8_t* values, int64_t column, size_t size) {
                 uint8_t* const to = y + static_cast<size_t>(column) * 2;
                 if (encoding.type() == output) {
                   std::memcpy(to, x, size * 2);
                   return;
                 }
                 convert(values, size, to);
                 if (!is_float16 || largest_of(values, size) < kFloat16Overflow) return;
                 for (size_t i = 0; i < size; ++i) {
                   if (std::fabs(LoadElement(DataType::kFloat, values + i * 4)) < kFloat16Overflow)
                     continue;
                   encoding.faults.TooLarge(region.column + column + static_cast<int64_t>(i));
                   return;
                 }
               });
}

void EncodeBnb4(const Encoding& encoding, const RegionBytes& bytes) {
  const bool nf4 = IsNf4(encoding.plan.layout);
  const bool nested = NeedsFacts(encoding.plan.layout);
  const BnbKernel kernel =
      encoding.kernels.bnb[static_cast<size_t>(nf4 ? BnbTable::kNf4 : BnbTable::kFp4)];
  const rules::Table4& table = nf4 ? rules::kNf4Table : rules::kFp4Table;
  constexpr size_t kBlock = rules::kBnbBlock;
  constexpr size_t kNested = rules::kBnbNestedBlock;
  // For 256 blocks, or for the remaining ones.
  std::array<float, kNested> absmax;
  size_t found = 0;
  uint8_t* scales = bytes[Role::kScale].row(0);
  uint8_t* nested_scales = bytes[Role::kNestedScale].row(0);
  const auto put_scales = [&] {
    if (!nested) {
      std::memcpy(scales, absmax.data(), found * sizeof(float));
      scales += found * sizeof(float);
    } else if (found != 0) {
      for (size_t i = 0; i < found; ++i) absmax[i] -= encoding.facts.offset;
      const float largest = EncodeNested(absmax.data(), found, scales);
      scales += found;
      std::memcpy(nested_scales, &largest, sizeof(largest));
      nested_scales += sizeof(largest);
    }
    found = 0;
  };
  ForEachPiece(
      encoding, bytes, [&](const uint8_t*, const uint8_t* values, int64_t column, size_t size) {
        uint8_t* const y = bytes[Role::kCodes].row(0) + column / 2;
        const size_t blocks = size / kBlock;
        kernel(values, blocks, absmax.data() + found, y);
        found += blocks;
        const size_t rest = size % kBlock;
        if (rest != 0) {
          // The last block of the weight.
          float last[kBlock];
          std::memcpy(last, values + blocks * kBlock * sizeof(float), rest * sizeof(float));
          float largest = 0;
          for (size_t i = 0; i < rest; ++i) largest = std::max(largest, std::fabs(last[i]));
          largest = rules::LastBlockAbsmax(largest);
          absmax[found++] = largest;
          const auto code = [&](size_t i) {
            return table.Code(i < rest ? rules::LastBlockValue(last[i], largest) : 0);
          };
          for (size_t i = 0; i < rest; i += 2) {
            y[(blocks * kBlock + i) / 2] = static_cast<uint8_t>(code(i) << 4 | code(i + 1));
          }
        }
        if (found == kNested) put_scales();
      });
  put_scales();
}

void EncodeBnbInt8(const Encoding& encoding, const RegionBytes& bytes) {
  const Region& region = bytes.region;
  const DataType type = encoding.type();
  const QuantizeKernel quantize =
      encoding.kernels.quantize[static_cast<size_t>(Division::kMultiply)][static_cast<size_t>(
          Encoder::kInteger8)][static_cast<size_t>(ScaleMode::kRuns)];
  FloatPiece piece(encoding.kernels, type);
  alignas(64) uint8_t halves[kPiece * 2];
  alignas(64) uint8_t rounded[kPiece * sizeof(float)];
  for (int64_t row = 0; row < region.rows; ++row) {
    const uint8_t* const x = bytes.x.row(row);
    const float largest = encoding.LargestOfRow(bytes, row);
    if (!std::isfinite(largest)) return;
    if (largest >= kFloat16Overflow) {
      for (int64_t i = 0; i < region.columns; ++i) {
        const float value = LoadElement(type, x + static_cast<size_t>(i) * encoding.width());
        if (std::fabs(value) < kFloat16Overflow) continue;
        encoding.faults.TooLarge(encoding.IndexOf(region.row + row, region.column + i));
        break;
      }
      continue;
    }
    const float scale = DecodeFloat16(EncodeFloat16(largest));
    StoreElement(DataType::kFloat, scale, bytes[Role::kScale].row(row));
    const float factor = rules::RowFactor(scale);
    QuantizeTile tile;
    tile.scale = &factor;
    tile.minimum = -128;
    tile.maximum = 127;
    for (int64_t begin = 0; begin < region.columns; begin += kPiece) {
      tile.size = static_cast<size_t>(std::min<int64_t>(region.columns - begin, kPiece));
      tile.x = piece.Load(x + static_cast<size_t>(begin) * encoding.width(), tile.size);
      if (type != DataType::kFloat16) {
        encoding.kernels.float_to_float16(tile.x, tile.size, halves);
        encoding.kernels.float16_to_float(halves, tile.size, rounded);
        tile.x = rounded;
      }
      tile.y = bytes[Role::kCodes].row(row) + begin;
      quantize(tile);
    }
  }
}

EncodeRegion EncodeRegionOf(Layout layout) {
  const LayoutInfo& info = Info(layout);
  if (info.family == LayoutFamily::kBitsAndBytes) {
    return layout == Layout::kBnbInt8 ? EncodeBnbInt8 : EncodeBnb4;
  }
  if (info.family == LayoutFamily::kGguf) return info.columns_of == 1 ? EncodeFloats : EncodeGguf;
  if (layout == Layout::kFp8Tiles || layout == Layout::kFp8Block) return EncodeTiles;
  if (layout == Layout::kNvfp4 || layout == Layout::kMxfp4) return EncodeFp4;
  return info.columns_of == 1 ? EncodeRows : EncodeInt4;
}

}  // namespace quantd
