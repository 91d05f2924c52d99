#include "layouts/decode_region.h"

#include <algorithm>
#include <cstring>

#include "rules/layouts.h"

namespace quantd {
namespace {

constexpr int64_t kTile = 128;

DequantizeKernel KernelOf(const KernelTable& kernels, Decoder decoder) {
  return kernels.dequantize[static_cast<size_t>(decoder)][static_cast<size_t>(ScaleMode::kRuns)];
}

// The type to which a layout's product is rounded before the output; FLOAT: none.
DataType ThroughOf(const WeightPlan& plan) {
  switch (plan.layout) {
    case Layout::kNvfp4:
    case Layout::kMxfp4:
      return DataType::kBfloat16;
    case Layout::kFp8Tiles:
    case Layout::kBnbInt8:
      return DataType::kFloat;
    default:
      return plan.type;
  }
}

}  // namespace

void OutputPiece::Store(size_t size, uint8_t* y) {
  if (through_ != DataType::kFloat) {
    FromFloat(kernels_, through_)(bytes(), size, narrow_.data());
    if (through_ == output_) {
      std::memcpy(y, narrow_.data(), size * 2);
      return;
    }
    ToFloat(kernels_, through_)(narrow_.data(), size, bytes());
  }
  if (output_ == DataType::kFloat) {
    std::memcpy(y, bytes(), size * sizeof(float));
  } else {
    FromFloat(kernels_, output_)(bytes(), size, y);
  }
}

void DecodeScaled(const Decoding& decoding, const DecodeBytes& bytes) {
  const Region& region = bytes.region;
  const Layout layout = decoding.plan.layout;
  const bool integers =
      layout == Layout::kInt8 || layout == Layout::kInt8Tensor || layout == Layout::kBnbInt8;
  const bool tiles = layout == Layout::kFp8Tiles || layout == Layout::kFp8Block;
  const bool whole_tensor = layout == Layout::kInt8Tensor || layout == Layout::kFp8Tensor;
  const DataType scale_type = layout == Layout::kFp8Tiles || layout == Layout::kBnbInt8
                                  ? DataType::kFloat
                                  : decoding.plan.type;
  const auto scale_bytes = static_cast<size_t>(Info(scale_type).bits / 8);
  const DequantizeKernel dequantize =
      KernelOf(decoding.kernels, integers ? Decoder::kInt8 : Decoder::kFloat8E4M3Fn);
  OutputPiece piece(decoding, ThroughOf(decoding.plan));
  const float unit = rules::kRowUnit;
  for (int64_t row = 0; row < region.rows; ++row) {
    const uint8_t* const scales =
        whole_tensor ? nullptr : bytes[Role::kScale].row(tiles ? row / kTile : row);
    for (int64_t column = 0; column < region.columns; column += kPiece) {
      float scale[kPiece / kTile];
      DequantizeTile tile;
      tile.size = static_cast<size_t>(std::min<int64_t>(region.columns - column, kPiece));
      if (tiles) {
        tile.run = kTile;
        for (size_t k = 0; k * kTile < tile.size; ++k) {
          scale[k] = LoadElement(scale_type,
                                 scales + (static_cast<size_t>(column / kTile) + k) * scale_bytes);
        }
      } else {
        scale[0] = whole_tensor ? decoding.tensor_scale : LoadElement(scale_type, scales);
      }
      tile.x = bytes[Role::kCodes].row(row) + column;
      tile.y = piece.bytes();
      tile.scale = scale;
      dequantize(tile);
      if (layout == Layout::kBnbInt8) {
        tile.x = nullptr;
        for (size_t i = 0; i < tile.size; ++i) piece.values()[i] *= unit;
      }
      piece.Store(tile.size, bytes.y.row(row) + static_cast<size_t>(column) * decoding.width());
    }
  }
}

void DecodeInt4(const Decoding& decoding, const DecodeBytes& bytes) {
  const Region& region = bytes.region;
  const Layout layout = decoding.plan.layout;
  const DataType type = decoding.plan.type;
  const auto scale_bytes = static_cast<size_t>(Info(type).bits / 8);
  const bool asymmetric = layout == Layout::kInt4G128Asym || layout == Layout::kInt4G32Asym;
  const auto group = static_cast<size_t>(Info(layout).columns_of);
  const DequantizeKernel dequantize = KernelOf(decoding.kernels, Decoder::kUint8);
  OutputPiece piece(decoding, type);
  alignas(64) uint8_t codes[kPiece];
  float scale[kPiece / 32];
  int32_t zero_point[kPiece / 32];
  for (int64_t row = 0; row < region.rows; ++row) {
    for (int64_t column = 0; column < region.columns; column += kPiece) {
      DequantizeTile tile;
      tile.size = static_cast<size_t>(std::min<int64_t>(region.columns - column, kPiece));
      tile.run = group;
      const size_t first = static_cast<size_t>(column) / group;
      for (size_t k = 0; k * group < tile.size; ++k) {
        scale[k] = LoadElement(type, bytes[Role::kScale].row(row) + (first + k) * scale_bytes);
        // 8 is added to both.
        zero_point[k] = 8;
        if (!asymmetric) continue;
        uint32_t word;
        std::memcpy(&word, bytes[Role::kZeroPoint].row(row / 8) + (first + k) * sizeof(word),
                    sizeof(word));
        zero_point[k] = static_cast<int32_t>(word >> (4 * (row % 8)) & 15);
      }
      decoding.kernels.unpack_uint4(bytes[Role::kCodes].row(row) + column / 2, tile.size, codes);
      tile.x = codes;
      tile.y = piece.bytes();
      tile.scale = scale;
      tile.zero_point = zero_point;
      dequantize(tile);
      piece.Store(tile.size, bytes.y.row(row) + static_cast<size_t>(column) * decoding.width());
    }
  }
}

void DecodeFp4(const Decoding& decoding, const DecodeBytes& bytes) {
  const Region& region = bytes.region;
  const bool nvidia = decoding.plan.layout == Layout::kNvfp4;
  const size_t group = nvidia ? 16 : 32;
  const DequantizeKernel dequantize = KernelOf(decoding.kernels, Decoder::kFloat4E2M1);
  OutputPiece piece(decoding, DataType::kBfloat16);
  alignas(64) uint8_t codes[kPiece];
  float scale[kPiece / 16];
  for (int64_t column = 0; column < region.columns; column += kPiece) {
    DequantizeTile tile;
    tile.size = static_cast<size_t>(std::min<int64_t>(region.columns - column, kPiece));
    tile.run = group;
    const uint8_t* const scales = bytes[Role::kScale].row(0) + static_cast<size_t>(column) / group;
    for (size_t k = 0; k * group < tile.size; ++k) {
      scale[k] = nvidia ? rules::GroupDivisor(scales[k], decoding.tensor_scale)
                        : rules::PowerOfCode(scales[k]);
    }
    decoding.kernels.unpack_uint4(bytes[Role::kCodes].row(0) + column / 2, tile.size, codes);
    tile.x = codes;
    tile.y = piece.bytes();
    tile.scale = scale;
    dequantize(tile);
    piece.Store(tile.size, bytes.y.row(0) + static_cast<size_t>(column) * decoding.width());
  }
}

void DecodeFloats(const Decoding& decoding, const DecodeBytes& bytes) {
  const Layout layout = decoding.plan.layout;
  const DataType stored = layout == Layout::kGgufF16    ? DataType::kFloat16
                          : layout == Layout::kGgufBf16 ? DataType::kBfloat16
                                                        : DataType::kFloat;
  const Region& region = bytes.region;
  const uint8_t* const x = bytes[Role::kCodes].row(0);
  const auto stored_bytes = static_cast<size_t>(Info(stored).bits / 8);
  if (stored == decoding.output) {
    std::memcpy(bytes.y.row(0), x, static_cast<size_t>(region.columns) * stored_bytes);
    return;
  }
  FloatPiece floats(decoding.kernels, stored);
  const ConvertTile convert = FromFloat(decoding.kernels, decoding.output);
  for (int64_t column = 0; column < region.columns; column += kPiece) {
    const auto size = static_cast<size_t>(std::min<int64_t>(region.columns - column, kPiece));
    const auto at = static_cast<size_t>(column);
    const uint8_t* const values = floats.Load(x + at * stored_bytes, size);
    uint8_t* const y = bytes.y.row(0) + at * decoding.width();
    if (convert == nullptr) {
      std::memcpy(y, values, size * sizeof(float));
    } else {
      convert(values, size, y);
    }
  }
}

void DecodeBnb4(const Decoding& decoding, const DecodeBytes& bytes) {
  constexpr size_t kBlock = rules::kBnbBlock;
  const Region& region = bytes.region;
  const bool nested = NeedsFacts(decoding.plan.layout);
  OutputPiece piece(decoding, decoding.plan.type);
  const auto absmax_of = [&](size_t block) {
    if (!nested) {
      return LoadElement(DataType::kFloat, bytes[Role::kScale].row(0) + block * sizeof(float));
    }
    const float largest =
        LoadElement(DataType::kFloat, bytes[Role::kNestedScale].row(0) +
                                          block / rules::kBnbNestedBlock * sizeof(float));
    return decoding.nested_map[bytes[Role::kScale].row(0)[block]] * largest + decoding.facts.offset;
  };
  for (int64_t column = 0; column < region.columns; column += kPiece) {
    const auto size = static_cast<size_t>(std::min<int64_t>(region.columns - column, kPiece));
    const auto at = static_cast<size_t>(column);
    const uint8_t* const codes = bytes[Role::kCodes].row(0) + at / 2;
    float* const values = piece.values();
    for (size_t begin = 0; begin < size; begin += kBlock) {
      const float absmax = absmax_of((at + begin) / kBlock);
      const size_t end = std::min(size, begin + kBlock);
      for (size_t i = begin; i < end; ++i) {
        const uint8_t code = codes[i / 2] >> (i % 2 == 0 ? 4 : 0) & 15;
        values[i] = decoding.map[code] * absmax;
      }
    }
    piece.Store(size, bytes.y.row(0) + at * decoding.width());
  }
}

DecodeRegion DecodeRegionOf(Layout layout) {
  switch (layout) {
    case Layout::kFp8Tiles:
    case Layout::kFp8Block:
    case Layout::kInt8:
    case Layout::kInt8Tensor:
    case Layout::kFp8:
    case Layout::kFp8Tensor:
    case Layout::kBnbInt8:
      return DecodeScaled;
    case Layout::kInt4G128:
    case Layout::kInt4G32:
    case Layout::kInt4G128Asym:
    case Layout::kInt4G32Asym:
      return DecodeInt4;
    case Layout::kNvfp4:
    case Layout::kMxfp4:
      return DecodeFp4;
    case Layout::kGgufF32:
    case Layout::kGgufF16:
    case Layout::kGgufBf16:
      return DecodeFloats;
    case Layout::kBnbNf4:
    case Layout::kBnbNf4Double:
    case Layout::kBnbFp4:
    case Layout::kBnbFp4Double:
      return DecodeBnb4;
    default:
      return DecodeGguf;
  }
}

}  // namespace quantd
