#include "grid.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace quantd::cli {
namespace {

int64_t CeilDivide(int64_t a, int64_t b) { return a / b + (a % b != 0); }

absl::StatusOr<size_t> ResolveAxis(int64_t axis, size_t rank) {
  const auto r = static_cast<int64_t>(rank);
  if (axis < -r || axis >= r) {
    return absl::InvalidArgumentError(
        absl::StrCat("axis is ", axis, ", x has ", r, " dimensions: [", -r, ", ", r - 1, "]"));
  }
  return static_cast<size_t>(axis < 0 ? axis + r : axis);
}

BlockGrid MakeGrid(absl::Span<const int64_t> shape, Shape block) {
  BlockGrid grid;
  grid.shape.assign(shape.begin(), shape.end());
  grid.block = std::move(block);
  for (size_t d = 0; d < shape.size(); ++d) {
    grid.block[d] = std::clamp<int64_t>(grid.block[d], 1, std::max<int64_t>(shape[d], 1));
    grid.counts.push_back(CeilDivide(shape[d], grid.block[d]));
  }
  grid.scale_shape = grid.counts;
  grid.scales = Product(grid.counts);
  return grid;
}

BlockGrid OneScale(absl::Span<const int64_t> shape) {
  BlockGrid grid = MakeGrid(shape, Shape(shape.begin(), shape.end()));
  std::fill(grid.counts.begin(), grid.counts.end(), 1);
  grid.scale_shape.clear();
  grid.scales = 1;
  return grid;
}

absl::StatusOr<BlockGrid> AxisGrid(absl::Span<const int64_t> shape, int64_t axis) {
  const absl::StatusOr<size_t> dimension = ResolveAxis(axis, shape.size());
  if (!dimension.ok()) return dimension.status();
  Shape block(shape.begin(), shape.end());
  block[*dimension] = 1;
  BlockGrid grid = MakeGrid(shape, block);
  for (size_t d = 0; d < shape.size(); ++d) grid.counts[d] = d == *dimension ? shape[d] : 1;
  grid.scale_shape = {shape[*dimension]};
  grid.scales = shape[*dimension];
  return grid;
}

// The grid of block_shape or block_size; REQUIRES: one of them is set.
absl::StatusOr<BlockGrid> BlockedGrid(absl::Span<const int64_t> shape,
                                      const Granularity& granularity) {
  Shape block = granularity.block_shape;
  if (granularity.block_size != 0) {
    if (granularity.block_size < 0 || !block.empty()) {
      return absl::InvalidArgumentError(
          "block_size must be >= 1, and is not for use together with block_shape");
    }
    const absl::StatusOr<size_t> axis = ResolveAxis(granularity.axis.value_or(1), shape.size());
    if (!axis.ok()) return axis.status();
    block.assign(shape.size(), 1);
    block[*axis] = granularity.block_size;
  } else if (granularity.axis.has_value()) {
    return absl::InvalidArgumentError("axis is not for use together with block_shape");
  }
  if (block.size() != shape.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "block_shape has ", block.size(), " lengths, x has ", shape.size(), " dimensions"));
  }
  for (size_t d = 0; d < shape.size(); ++d) {
    if (block[d] == -1)
      block[d] = shape[d];
    else if (block[d] < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("block_shape[", d, "] is ", block[d], "; it must be >= 1, or -1"));
    }
  }
  return MakeGrid(shape, block);
}

bool SaysBlocks(const Granularity& granularity) {
  return granularity.block_size != 0 || !granularity.block_shape.empty();
}

// One past the last index of a piece that starts at `begin` along a dimension where pieces are
// `extent` long: whole blocks, or a part of one block.
int64_t PieceEnd(int64_t begin, int64_t extent, int64_t block, int64_t length) {
  const int64_t end = std::min(begin + extent, length);
  if (extent >= length || extent % block == 0) return end;
  return std::min(end, (begin / block + 1) * block);
}

}  // namespace

Box BlockGrid::BlocksOf(const Box& box) const {
  Box blocks;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (counts[d] <= 1) {
      blocks.begin.push_back(0);
      blocks.size.push_back(counts[d]);
      continue;
    }
    blocks.begin.push_back(box.begin[d] / block[d]);
    blocks.size.push_back(CeilDivide(box.begin[d] + box.size[d], block[d]) - blocks.begin[d]);
  }
  return blocks;
}

Shape BlockGrid::PieceBlockShape(const Box& box) const {
  Shape result;
  for (size_t d = 0; d < shape.size(); ++d) {
    result.push_back(box.size[d] <= block[d] ? -1 : block[d]);
  }
  return result;
}

absl::StatusOr<BlockGrid> DynamicGrid(absl::Span<const int64_t> shape,
                                      const Granularity& granularity) {
  if (SaysBlocks(granularity)) return BlockedGrid(shape, granularity);
  if (granularity.axis.has_value()) return AxisGrid(shape, *granularity.axis);
  return OneScale(shape);
}

absl::StatusOr<BlockGrid> ScaleGrid(absl::Span<const int64_t> shape,
                                    absl::Span<const int64_t> scale_shape,
                                    const Granularity& granularity) {
  absl::StatusOr<BlockGrid> grid = OneScale(shape);
  if (SaysBlocks(granularity)) {
    grid = BlockedGrid(shape, granularity);
  } else if (scale_shape.size() == 1 && scale_shape[0] != 1) {
    grid = AxisGrid(shape, granularity.axis.value_or(1));
  } else if (scale_shape.size() >= 2 && scale_shape.size() == shape.size()) {
    Shape block;
    for (size_t d = 0; d < shape.size(); ++d) {
      const bool divides = scale_shape[d] > 0 && shape[d] % scale_shape[d] == 0;
      if (!divides && scale_shape[d] != shape[d]) {
        return absl::InvalidArgumentError(absl::StrCat("scale has ", scale_shape[d],
                                                       " groups along dimension ", d,
                                                       ", which do not divide x's ", shape[d]));
      }
      block.push_back(divides ? shape[d] / scale_shape[d] : 1);
    }
    grid = MakeGrid(shape, block);
    for (size_t d = 0; d < shape.size(); ++d) grid->counts[d] = scale_shape[d];
    grid->scales = Product(grid->counts);
    grid->scale_shape = grid->counts;
  }
  if (!grid.ok()) return grid;
  const bool one = grid->scale_shape.empty() && scale_shape.size() <= 1;
  if (!one && absl::MakeConstSpan(grid->scale_shape) != scale_shape) {
    return absl::InvalidArgumentError(absl::StrCat("scale has shape ", ShapeString(scale_shape),
                                                   ", x ", ShapeString(shape), " needs ",
                                                   ShapeString(grid->scale_shape)));
  }
  grid->scale_shape.assign(scale_shape.begin(), scale_shape.end());
  return grid;
}

std::optional<PiecePlan> PlanPieces(const BlockGrid& grid, Cut cut,
                                    absl::FunctionRef<bool(const Shape& size)> fits) {
  const size_t rank = grid.shape.size();
  const bool whole_blocks = cut == Cut::kBetweenBlocks;
  PiecePlan plan;
  Shape extent = grid.shape;
  if (fits(extent)) {
    plan.pieces.push_back(WholeBox(grid.shape));
    plan.run = Product(grid.shape);
    return plan;
  }
  for (size_t d = 0; d < rank; ++d) {
    if (grid.shape[d] == 0) return std::nullopt;  // nothing to cut: it is the scales that are many
    extent[d] = whole_blocks ? grid.block[d] : 1;
  }
  if (!fits(extent)) return std::nullopt;
  for (size_t d = rank; d-- > 0;) {
    const int64_t step = extent[d];
    int64_t good = 1, bad = CeilDivide(grid.shape[d], step) + 1;
    while (bad - good > 1) {
      const int64_t middle = good + (bad - good) / 2;
      extent[d] = std::min(middle * step, grid.shape[d]);
      (fits(extent) ? good : bad) = middle;
    }
    extent[d] = std::min(good * step, grid.shape[d]);
    if (extent[d] == grid.shape[d]) continue;
    if (extent[d] > grid.block[d]) extent[d] -= extent[d] % grid.block[d];
    break;
  }

  // The run ends at the first dimension, from inside, that is not whole.
  plan.run = 1;
  for (size_t d = rank; d-- > 0;) {
    plan.run *= extent[d];
    if (extent[d] != grid.shape[d]) break;
  }
  Box box{Shape(rank, 0), Shape(rank, 0)};
  for (;;) {
    for (size_t d = 0; d < rank; ++d) {
      box.size[d] = PieceEnd(box.begin[d], extent[d], grid.block[d], grid.shape[d]) - box.begin[d];
    }
    plan.pieces.push_back(box);
    size_t d = rank;
    for (;;) {
      if (d == 0) return plan;
      --d;
      box.begin[d] += box.size[d];
      if (box.begin[d] < grid.shape[d]) break;
      box.begin[d] = 0;
    }
  }
}

}  // namespace quantd::cli
