// DecodeGrid: the same pass over regions as DecodeWeight, for any size of blocks.
#include "quantd/decode_grid.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "layouts/decode_region.h"
#include "layouts/geometry.h"
#include "rules/layouts.h"

namespace quantd {
namespace {

constexpr int64_t kWord = sizeof(uint32_t);

struct CodesForm {
  Decoder decoder;
  int64_t codes, bytes;  // codes in a unit of bytes
  int32_t offset;        // added to codes and packed zero points when they are stored
};

CodesForm FormOf(GridCodes codes) {
  switch (codes) {
    case GridCodes::kFloat8E4M3Fn:
      return {Decoder::kFloat8E4M3Fn, 1, 1, 0};
    case GridCodes::kFloat8E5M2:
      return {Decoder::kFloat8E5M2, 1, 1, 0};
    case GridCodes::kInt8:
      return {Decoder::kInt8, 1, 1, 0};
    case GridCodes::kFloat4E2M1:
      return {Decoder::kFloat4E2M1, 2, 1, 0};
    case GridCodes::kPackedInt4:
      return {Decoder::kUint8, 8, kWord, 8};
    default:
      return {Decoder::kUint8, 4, kWord, 128};
  }
}

Geometry GeometryOf(const Grid& grid) {
  const CodesForm form = FormOf(grid.codes);
  const int64_t scale_bytes = Info(grid.scale_type).bits / 8;
  const auto part = [&grid](Role role, int64_t row_step, int64_t column_step, int64_t bytes) {
    PartGeometry made{.role = role, .suffix = "", .dtype = "", .shape = {}};
    made.row_step = row_step;
    made.column_step = column_step;
    made.unit_bytes = bytes;
    made.row_bytes = static_cast<uint64_t>(DivideUp(grid.columns, column_step) * bytes);
    made.bytes = static_cast<uint64_t>(DivideUp(grid.rows, row_step)) * made.row_bytes;
    return made;
  };
  Geometry geometry;
  geometry.rows = grid.rows;
  geometry.columns = grid.columns;
  geometry.align = 64;  // whole words of codes
  geometry.parts = {part(Role::kCodes, 1, form.codes, form.bytes),
                    part(Role::kScale, grid.block_rows, grid.block_columns, scale_bytes)};
  if (grid.zero_point_type == DataType::kInt8) {
    geometry.parts.push_back(part(Role::kZeroPoint, grid.block_rows, grid.block_columns, 1));
  } else if (grid.zero_point_type == DataType::kInt32) {
    geometry.parts.push_back(
        part(Role::kZeroPoint, grid.block_rows * form.codes, grid.block_columns, kWord));
  }
  return geometry;
}

float ScaleAt(DataType type, const uint8_t* scale) {
  if (type == DataType::kFloat8E4M3Fn) return DecodeFormat(kE4M3FnFormat, *scale);
  if (type == DataType::kFloat8E8M0) {
    return *scale == 255 ? std::numeric_limits<float>::quiet_NaN() : rules::PowerOfCode(*scale);
  }
  return LoadElement(type, scale);
}

class GridRegion {
 public:
  GridRegion(const Grid& grid, const KernelTable& kernels, DataType output,
             const DecodeBytes& bytes)
      : grid_(grid),
        form_(FormOf(grid.codes)),
        kernels_(kernels),
        dequantize_(kernels.dequantize[static_cast<size_t>(form_.decoder)]
                                      [static_cast<size_t>(ScaleMode::kRuns)]),
        piece_(kernels, output, grid.through),
        width_(static_cast<size_t>(Info(output).bits / 8)),
        bytes_(bytes),
        has_points_(form_.offset != 0 || grid.zero_point_type != DataType::kUnspecified) {}

  void Decode() {
    const Region& region = bytes_.region;
    for (int64_t row = 0; row < region.rows; ++row) {
      for (int64_t column = 0; column < region.columns; column += kPiece) {
        DecodePiece(row, column);
      }
    }
  }

 private:
  void DecodePiece(int64_t row, int64_t column) {
    const Region& region = bytes_.region;
    const int64_t in_weight = region.column + column;
    const auto size = static_cast<size_t>(std::min<int64_t>(region.columns - column, kPiece));
    DequantizeTile tile;
    tile.size = size;
    tile.run = static_cast<size_t>(std::min<int64_t>(grid_.block_columns, int64_t{1} << 40));
    tile.first = static_cast<size_t>(in_weight % grid_.block_columns);
    const int64_t first = in_weight / grid_.block_columns - region.column / grid_.block_columns;
    const auto blocks = static_cast<size_t>(DivideUp(
        in_weight % grid_.block_columns + static_cast<int64_t>(size), grid_.block_columns));
    ReadScales(row, first, blocks);
    tile.x = Codes(row, column, size);
    tile.y = piece_.bytes();
    tile.scale = scale_.data();
    tile.zero_point = has_points_ ? zero_point_.data() : nullptr;
    dequantize_(tile);
    piece_.Store(size, bytes_.y.row(row) + static_cast<size_t>(column) * width_);
  }

  void ReadScales(int64_t row, int64_t first, size_t blocks) {
    const int64_t begin = bytes_.region.row;
    const int64_t block_row = (begin + row) / grid_.block_rows;
    const int64_t scale_bytes = Info(grid_.scale_type).bits / 8;
    const uint8_t* const scales =
        bytes_[Role::kScale].row(block_row - begin / grid_.block_rows) + first * scale_bytes;
    const int64_t per_word = form_.codes;
    for (size_t k = 0; k < blocks; ++k) {
      scale_[k] =
          ScaleAt(grid_.scale_type, scales + k * static_cast<size_t>(scale_bytes)) * grid_.factor;
      zero_point_[k] = form_.offset;
      if (grid_.zero_point_type == DataType::kInt8) {
        const uint8_t* const points =
            bytes_[Role::kZeroPoint].row(block_row - begin / grid_.block_rows) + first;
        zero_point_[k] += static_cast<int8_t>(points[k]);
      } else if (grid_.zero_point_type == DataType::kInt32) {
        const int64_t step = grid_.block_rows * per_word;
        uint32_t word;
        std::memcpy(&word,
                    bytes_[Role::kZeroPoint].row((begin + row) / step - begin / step) +
                        (static_cast<size_t>(first) + k) * sizeof(word),
                    sizeof(word));
        const auto bits = static_cast<uint32_t>(32 / per_word);
        const auto shift = static_cast<uint32_t>(block_row % per_word) * bits;
        zero_point_[k] = static_cast<int32_t>(word >> shift & ((1u << bits) - 1));
      }
    }
  }

  const uint8_t* Codes(int64_t row, int64_t column, size_t size) {
    const uint8_t* const from = bytes_[Role::kCodes].row(row) + column / form_.codes * form_.bytes;
    if (form_.codes != 8 && form_.codes != 2) return from;  // one byte per code
    kernels_.unpack_uint4(from, size, codes_.data());
    return codes_.data();
  }

  const Grid& grid_;
  const CodesForm form_;
  const KernelTable& kernels_;
  const DequantizeKernel dequantize_;
  OutputPiece piece_;
  const size_t width_;
  const DecodeBytes& bytes_;
  const bool has_points_;
  alignas(64) std::array<uint8_t, kPiece> codes_;
  std::array<float, kPiece + 1> scale_;
  std::array<int32_t, kPiece + 1> zero_point_;
};

}  // namespace

absl::Status DecodeGrid(const Grid& grid, const ByteSource& codes, const ByteSource& scales,
                        const ByteSource* zero_points, DataType output, ByteSink& weight,
                        const Executor& executor, Interrupted interrupted) {
  const std::array<const ByteSource*, 3> sources = {&codes, &scales, zero_points};
  return DecodeRegions(
      GeometryOf(grid), sources, output, weight, executor, interrupted,
      [&](const DecodeBytes& bytes) { GridRegion(grid, Kernels(), output, bytes).Decode(); });
}

}  // namespace quantd
