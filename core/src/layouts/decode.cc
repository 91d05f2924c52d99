// DecodeWeight: the pass over the parts of a weight.
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

}  // namespace

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
