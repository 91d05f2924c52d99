// DecodeWeight, and how a region of each kind of layout is decoded.
#include <algorithm>
#include <cstring>
#include <optional>

#include "layouts/decode_region.h"
#include "layouts/geometry.h"
#include "quantd/convert_weight.h"
#include "quantd/decode_grid.h"
#include "rules/layouts.h"

namespace quantd {
namespace {

// Layouts whose scales form a grid are decoded as such.
std::optional<Grid> GridOf(const WeightPlan& plan) {
  Grid grid;
  grid.rows = plan.rows;
  grid.columns = grid.block_columns = plan.columns;
  grid.scale_type = grid.through = plan.type;
  if (IsInt8(plan.layout)) grid.codes = GridCodes::kInt8;
  switch (plan.layout) {
    case Layout::kInt8:
    case Layout::kFp8:
      return grid;
    case Layout::kInt8Tensor:
    case Layout::kFp8Tensor:
      grid.block_rows = plan.rows;
      return grid;
    case Layout::kFp8Tiles:
      grid.scale_type = grid.through = DataType::kFloat;
      [[fallthrough]];
    case Layout::kFp8Block:
      grid.block_rows = grid.block_columns = kTile;
      return grid;
    case Layout::kInt4G128Asym:
    case Layout::kInt4G32Asym:
      grid.zero_point_type = DataType::kInt32;
      [[fallthrough]];
    case Layout::kInt4G128:
    case Layout::kInt4G32:
      grid.codes = GridCodes::kPackedInt4;
      grid.block_columns = Info(plan.layout).columns_of;
      return grid;
    default:
      return std::nullopt;
  }
}

// Reads the parts that all regions need.
absl::Status ReadWholeParts(const Geometry& geometry, absl::Span<const ByteSource* const> parts,
                            Decoding& decoding) {
  for (size_t i = 0; i < geometry.parts.size(); ++i) {
    const PartGeometry& part = geometry.parts[i];
    void* const to = part.role == Role::kGlobalScale ? &decoding.global_scale
                     : part.role == Role::kMap       ? decoding.map.data()
                     : part.role == Role::kNestedMap ? decoding.nested_map.data()
                                                     : nullptr;
    if (to == nullptr) continue;
    absl::Status status = parts[i]->Read(0, {static_cast<uint8_t*>(to), part.bytes});
    if (!status.ok()) return status;
  }
  if (!IsNf4(decoding.plan.layout)) rules::SetFp4Signs(decoding.map);
  return absl::OkStatus();
}

DequantizeKernel KernelOf(const KernelTable& kernels, Decoder decoder) {
  return kernels.dequantize[static_cast<size_t>(decoder)][static_cast<size_t>(ScaleMode::kRuns)];
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

void DecodeBnbInt8(const Decoding& decoding, const DecodeBytes& bytes) {
  const Region& region = bytes.region;
  const DequantizeKernel dequantize = KernelOf(decoding.kernels, Decoder::kInt8);
  OutputPiece piece(decoding, DataType::kFloat);
  for (int64_t row = 0; row < region.rows; ++row) {
    const float scale = LoadElement(DataType::kFloat, bytes[Role::kScale].row(row));
    for (int64_t column = 0; column < region.columns; column += kPiece) {
      DequantizeTile tile;
      tile.size = static_cast<size_t>(std::min<int64_t>(region.columns - column, kPiece));
      tile.x = bytes[Role::kCodes].row(row) + column;
      tile.y = piece.bytes();
      tile.scale = &scale;
      dequantize(tile);
      for (size_t i = 0; i < tile.size; ++i) piece.values()[i] *= rules::kRowUnit;
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
      scale[k] = nvidia ? rules::GroupDivisor(scales[k], decoding.global_scale)
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
  const LayoutInfo& info = Info(layout);
  if (info.family == LayoutFamily::kBitsAndBytes) {
    return layout == Layout::kBnbInt8 ? DecodeBnbInt8 : DecodeBnb4;
  }
  if (info.family == LayoutFamily::kGguf) return info.columns_of == 1 ? DecodeFloats : DecodeGguf;
  return DecodeFp4;
}

absl::Status DecodeRegions(const Geometry& geometry, absl::Span<const ByteSource* const> parts,
                           DataType output, ByteSink& weight, const Executor& executor,
                           Interrupted interrupted,
                           absl::FunctionRef<void(const DecodeBytes&)> decode) {
  const int64_t width = Info(output).bits / 8;
  const Regions regions(
      geometry, 0, geometry.rows, width,
      PieceBytes(geometry, ByteSize(output, geometry.rows * geometry.columns), executor.threads()));
  return ForEachRegion(regions, executor, interrupted, [&](const Region& region, Buffers& buffers) {
    DecodeBytes bytes{.region = region, .parts = {}, .y = {}};
    for (size_t i = 0; i < geometry.parts.size(); ++i) {
      const PartGeometry& part = geometry.parts[i];
      if (!IsCut(part.role)) continue;
      absl::Status read = ReadRectangle(*parts[i], PartBytesOf(part, region), buffers.parts[i],
                                        bytes.parts[static_cast<size_t>(part.role)]);
      if (!read.ok()) return read;
    }
    const ByteRectangle rectangle = WeightBytesOf(geometry, region, width);
    bytes.y = {buffers.weight.Make(rectangle.bytes()), rectangle.row_bytes};
    decode(bytes);
    return WriteRectangle(weight, rectangle, bytes.y.bytes);
  });
}

absl::Status DecodeWeight(const WeightPlan& plan, const WeightFacts& facts,
                          absl::Span<const ByteSource* const> parts, DataType output,
                          ByteSink& weight, const Executor& executor, Interrupted interrupted) {
  if (const std::optional<Grid> grid = GridOf(plan)) {
    return DecodeGrid(*grid, *parts[0], *parts[1], parts.size() > 2 ? parts[2] : nullptr, output,
                      weight, executor, interrupted);
  }
  Geometry geometry = GeometryOf(plan, facts);
  // Rows with a known scale can be cut.
  if (geometry.align == 0) geometry.align = kPiece;
  Decoding decoding{.plan = plan,
                    .facts = facts,
                    .kernels = Kernels(),
                    .output = output,
                    .map = {},
                    .nested_map = {}};
  absl::Status status = ReadWholeParts(geometry, parts, decoding);
  if (!status.ok()) return status;
  const DecodeRegion decode = DecodeRegionOf(plan.layout);
  return DecodeRegions(geometry, parts, output, weight, executor, interrupted,
                       [&](const DecodeBytes& bytes) { decode(decoding, bytes); });
}

}  // namespace quantd
