// compressed-tensors' and DeepSeek's integers and FLOAT8: one scale per tensor, row, group or tile.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "layouts/encode_region.h"
#include "rules/layouts.h"

namespace quantd {
namespace {

float DivisorOf(Layout layout) { return IsInt8(layout) ? rules::kInt8Divisor : rules::kFp8Divisor; }

// Division in T. `reciprocals`: for 8-bit integers, FLOAT, and scales with a reciprocal.
Division DivisionIn(DataType type, bool reciprocals) {
  if (type == DataType::kFloat16) return Division::kDivideFloat16;
  if (type == DataType::kBfloat16) return Division::kDivideBfloat16;
  return reciprocals ? Division::kReciprocal : Division::kDivide;
}

QuantizeKernel KernelOf(const KernelTable& kernels, Division division, Encoder encoder) {
  return kernels.quantize[static_cast<size_t>(division)][static_cast<size_t>(encoder)]
                         [static_cast<size_t>(ScaleMode::kRuns)];
}

// Elements of a row: `tile` has the scales, their run, and the bounds.
void QuantizeRow(const Encoding& encoding, QuantizeKernel quantize, QuantizeTile tile,
                 const uint8_t* x, int64_t size, FloatPiece& piece, uint8_t* y) {
  const float* const scale = tile.scale;
  for (int64_t begin = 0; begin < size; begin += static_cast<int64_t>(kPiece)) {
    tile.size = static_cast<size_t>(std::min<int64_t>(size - begin, kPiece));
    tile.x = piece.Load(x + static_cast<size_t>(begin) * encoding.width(), tile.size);
    tile.y = y + begin;
    if (tile.run <= kPiece) tile.scale = scale + static_cast<size_t>(begin) / tile.run;
    quantize(tile);
  }
}

}  // namespace

float Encoding::LargestOfRow(const RegionBytes& bytes, int64_t row) const {
  const Region& region = bytes.region;
  const uint8_t* const x = bytes.x.row(row);
  const float largest = row_largest != nullptr
                            ? *row_largest
                            : Largest(kernels, plan.type)(x, static_cast<size_t>(region.columns));
  if (!std::isfinite(largest)) {
    faults.FindNonFinite(x, region.columns, IndexOf(region.row + row, region.column));
  }
  return largest;
}

float TensorScale(const WeightPlan& plan, const WeightFacts& facts) {
  return rules::SymmetricScale(plan.type, facts.largest, DivisorOf(plan.layout));
}

void EncodeRows(const Encoding& encoding, const RegionBytes& bytes) {
  const Region& region = bytes.region;
  const Layout layout = encoding.plan.layout;
  const DataType type = encoding.type();
  const bool whole_tensor = layout == Layout::kInt8Tensor || layout == Layout::kFp8Tensor;
  FloatPiece piece(encoding.kernels, type);
  for (int64_t row = 0; row < region.rows; ++row) {
    const uint8_t* const x = bytes.x.row(row);
    float scale;
    if (whole_tensor) {
      scale = TensorScale(encoding.plan, encoding.facts);
    } else {
      const float largest = encoding.LargestOfRow(bytes, row);
      if (!std::isfinite(largest)) return;
      scale = rules::SymmetricScale(type, largest, DivisorOf(layout));
      StoreElement(type, scale, bytes[Role::kScale].row(row));
    }
    const Encoder encoder = IsInt8(layout) ? Encoder::kInteger8 : Encoder::kFloat8E4M3Fn;
    const Division division = DivisionIn(type, IsInt8(layout) && HasReciprocal(scale));
    QuantizeTile tile;
    tile.scale = &scale;
    tile.minimum = -128;
    tile.maximum = 127;
    QuantizeRow(encoding, KernelOf(encoding.kernels, division, encoder), tile, x, region.columns,
                piece, bytes[Role::kCodes].row(row));
  }
}

void EncodeTiles(const Encoding& encoding, const RegionBytes& bytes) {
  constexpr size_t kSide = kTile;
  constexpr size_t kTiles = kPiece / kSide;  // in a piece
  const Region& region = bytes.region;
  const bool deepseek = encoding.plan.layout == Layout::kFp8Tiles;
  const DataType type = encoding.type();
  const Largest largest_of(encoding.kernels, type);
  const QuantizeKernel quantize =
      KernelOf(encoding.kernels, deepseek ? Division::kMultiply : DivisionIn(type, false),
               Encoder::kFloat8E4M3Fn);
  FloatPiece piece(encoding.kernels, type);
  for (int64_t row = 0; row < region.rows; row += kTile) {
    const auto rows = std::min<int64_t>(region.rows - row, kTile);
    uint8_t* scales = bytes[Role::kScale].row(row / kTile);
    for (int64_t column = 0; column < region.columns; column += kPiece) {
      const auto columns = static_cast<size_t>(std::min<int64_t>(region.columns - column, kPiece));
      const auto at = [&](int64_t r, size_t c) {
        return bytes.x.row(row + r) + (static_cast<size_t>(column) + c) * encoding.width();
      };
      float factors[kTiles];
      for (size_t tile = 0; tile * kSide < columns; ++tile) {
        const float largest = largest_of(at(0, tile * kSide), static_cast<size_t>(rows),
                                         std::min(kSide, columns - tile * kSide), bytes.x.pitch);
        if (!std::isfinite(largest)) {
          for (int64_t r = 0; r < region.rows; ++r) {
            if (encoding.faults.FindNonFinite(bytes.x.row(r), region.columns,
                                              encoding.IndexOf(region.row + r, region.column))) {
              return;
            }
          }
        }
        if (deepseek) {
          factors[tile] = rules::TileFactor(largest);
          StoreElement(DataType::kFloat, rules::TileScale(factors[tile]), scales);
          scales += sizeof(float);
        } else {
          factors[tile] = rules::SymmetricScale(type, largest, rules::kFp8Divisor);
          StoreElement(type, factors[tile], scales);
          scales += encoding.width();
        }
      }
      QuantizeTile tile;
      tile.scale = factors;
      tile.run = kSide;
      for (int64_t r = 0; r < rows; ++r) {
        QuantizeRow(encoding, quantize, tile, at(r, 0), static_cast<int64_t>(columns), piece,
                    bytes[Role::kCodes].row(row + r) + column);
      }
    }
  }
}

namespace {

// Adds 8 to both 4-bit codes of each byte.
void Offset8(uint8_t* packed, size_t size) {
  for (size_t i = 0; i < size; ++i) packed[i] ^= 0x88;
}

// The ranges of the groups of a piece, and what is made of them.
struct Groups {
  static constexpr size_t kMost = kPiece / 16;
  float low[kMost];
  float high[kMost];
  float scale[kMost];
  float zero_point[kMost] = {};
};

// A piece of a row, in groups.
struct GroupedPiece {
  GroupedPiece(const Encoding& encoding, const RegionBytes& bytes, int64_t row, int64_t column,
               size_t group)
      : x(bytes.x.row(row) + static_cast<size_t>(column) * encoding.width()),
        index(encoding.IndexOf(bytes.region.row + row, bytes.region.column + column)),
        size(static_cast<size_t>(std::min<int64_t>(bytes.region.columns - column, kPiece))),
        count(size / group),
        first(static_cast<size_t>(column) / group) {
    tile.size = size;
    tile.run = group;
  }

  // Finds the ranges of its groups, and sets what `tile` reads. False: an element is not finite.
  bool FindRanges(const Encoding& encoding, FloatPiece& piece, Groups& groups) {
    std::fill_n(groups.low, count, 0.0f);
    std::fill_n(groups.high, count, 0.0f);
    RangeTile ranges;
    tile.x = ranges.x = piece.Load(x, size);
    ranges.size = size;
    ranges.run = tile.run;
    ranges.min = groups.low;
    ranges.max = groups.high;
    tile.scale = groups.scale;
    if (!FindRange(encoding.kernels, NonFinite::kReject, ScaleMode::kRuns)(ranges)) return true;
    encoding.faults.FindNonFinite(x, static_cast<int64_t>(size), index);
    return false;
  }

  const uint8_t* const x;
  const int64_t index;       // of its first element in the weight
  const size_t size, count;  // elements, and groups
  const size_t first;        // group of the row
  QuantizeTile tile;
};

}  // namespace

void EncodeInt4(const Encoding& encoding, const RegionBytes& bytes) {
  const Region& region = bytes.region;
  const DataType type = encoding.type();
  const bool asymmetric = IsAsymmetric(encoding.plan.layout);
  const auto group = static_cast<size_t>(Info(encoding.plan.layout).columns_of);
  Division division = DivisionIn(type, false);
  if (asymmetric) {
    division = type == DataType::kFloat16    ? Division::kDivideAndAddFloat16
               : type == DataType::kBfloat16 ? Division::kDivideAndAddBfloat16
                                             : Division::kDivideAndAdd;
  }
  const QuantizeKernel quantize = KernelOf(encoding.kernels, division, Encoder::kInteger8);
  FloatPiece piece(encoding.kernels, type);
  alignas(64) uint8_t codes[kPiece];
  Groups groups;
  for (int64_t row = 0; row < region.rows; ++row) {
    // Zero points are packed along columns: the first of eight rows clears their words.
    uint8_t* const zeros = asymmetric ? bytes[Role::kZeroPoint].row(row / 8) : nullptr;
    for (int64_t column = 0; column < region.columns; column += kPiece) {
      GroupedPiece grouped(encoding, bytes, row, column, group);
      if (!grouped.FindRanges(encoding, piece, groups)) return;
      for (size_t k = 0; k < grouped.count; ++k) {
        const rules::BlockRange found = {groups.low[k], groups.high[k]};
        if (asymmetric) {
          const float scale = rules::RangeScale(type, found);
          if (std::isinf(scale)) {
            encoding.faults.TooLarge(grouped.index + static_cast<int64_t>(k * group));
            groups.scale[k] = 1;
            groups.zero_point[k] = 0;
          } else {
            groups.zero_point[k] = rules::ZeroPoint(type, found, scale);
            groups.scale[k] = rules::ScaleOrEpsilon(type, scale);
          }
          uint32_t word = 0;
          uint8_t* const at = zeros + (grouped.first + k) * sizeof(word);
          if (row % 8 != 0) std::memcpy(&word, at, sizeof(word));
          word |= static_cast<uint32_t>(static_cast<int>(groups.zero_point[k]) + 8)
                  << (4 * (row % 8));
          std::memcpy(at, &word, sizeof(word));
        } else {
          groups.scale[k] = rules::SymmetricScale(type, found.largest(), rules::kInt4Divisor);
        }
        StoreElement(type, groups.scale[k],
                     bytes[Role::kScale].row(row) + (grouped.first + k) * encoding.width());
      }
      QuantizeTile& tile = grouped.tile;
      tile.y = codes;
      tile.zero_point = asymmetric ? groups.zero_point : nullptr;
      tile.minimum = -8;
      tile.maximum = 7;
      quantize(tile);
      uint8_t* const packed = bytes[Role::kCodes].row(row) + column / 2;
      encoding.kernels.pack4(codes, tile.size, packed);
      Offset8(packed, tile.size / 2);
    }
  }
}

void EncodeFp4(const Encoding& encoding, const RegionBytes& bytes) {
  const Region& region = bytes.region;
  const DataType type = encoding.type();
  const bool nvidia = encoding.plan.layout == Layout::kNvfp4;
  const float global = nvidia ? rules::GlobalScale(type, encoding.facts.largest) : 1;
  const QuantizeKernel quantize = KernelOf(
      encoding.kernels, nvidia ? Division::kDivide : DivisionIn(type, false), Encoder::kFloat4E2M1);
  FloatPiece piece(encoding.kernels, type);
  alignas(64) uint8_t codes[kPiece];
  Groups groups;
  for (int64_t row = 0; row < region.rows; ++row) {
    for (int64_t column = 0; column < region.columns; column += kPiece) {
      GroupedPiece grouped(encoding, bytes, row, column, nvidia ? 16 : 32);
      if (!grouped.FindRanges(encoding, piece, groups)) return;
      uint8_t* const scale_codes = bytes[Role::kScale].row(row) + grouped.first;
      for (size_t k = 0; k < grouped.count; ++k) {
        const float largest = rules::BlockRange{groups.low[k], groups.high[k]}.largest();
        if (nvidia) {
          const uint32_t code = rules::GroupScaleCode(type, largest, global);
          scale_codes[k] = static_cast<uint8_t>(code);
          groups.scale[k] = rules::GroupDivisor(code, global);
        } else {
          const rules::MxScale found = rules::MxScaleOf(type, largest);
          scale_codes[k] = found.code;
          groups.scale[k] = found.divisor;
        }
      }
      grouped.tile.y = codes;
      grouped.tile.zero_point = groups.zero_point;  // 0 is added, so that -0 becomes 0
      quantize(grouped.tile);
      encoding.kernels.pack4(codes, grouped.tile.size, bytes[Role::kCodes].row(row) + column / 2);
    }
  }
}

}  // namespace quantd
