// Which scale belongs to which element, and how a tensor is cut into pieces that respect it.
//
// Every granularity is one idea: blocks of a fixed length along each dimension, the last one may be
// short. One scale for the tensor is one block; one an index along an axis is length 1 on the axis
// and the whole length elsewhere. A piece is a box of x that either holds whole blocks along a
// dimension or lies within one; so its scales are a box of the grid of scales, and the request for
// it says the same thing about fewer elements.
#ifndef QUANTD_CLI_GRID_H_
#define QUANTD_CLI_GRID_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "box.h"
#include "quantd/parameters.h"
#include "quantd/shape.h"

namespace quantd::cli {

struct BlockGrid {
  Shape shape;        // of x
  Shape block;        // length of a block along each dimension, >= 1
  Shape counts;       // blocks along each dimension: ceil(shape / block)
  Shape scale_shape;  // of the scale tensor: [], [N] or counts
  int64_t scales = 1;

  // The blocks that `box` touches, as a box of the grid.
  Box BlocksOf(const Box& box) const;
  // block_shape for a request that holds only `box`.
  Shape PieceBlockShape(const Box& box) const;
};

// The grid of a DynamicQuantize request. INVALID_ARGUMENT as the server would say it.
absl::StatusOr<BlockGrid> DynamicGrid(absl::Span<const int64_t> shape,
                                      const Granularity& granularity);

// The grid of a request that brings its scales.
absl::StatusOr<BlockGrid> ScaleGrid(absl::Span<const int64_t> shape,
                                    absl::Span<const int64_t> scale_shape,
                                    const Granularity& granularity);

// Where pieces may be cut: only between blocks (a piece finds its own scales), or anywhere that a
// piece's scales can still be said (the scales are known).
enum class Cut : uint8_t { kBetweenBlocks, kAnywhere };

struct PiecePlan {
  std::vector<Box> pieces;  // in the order of the tensor's first elements
  int64_t run = 0;          // elements of a piece that lie together in a row-major tensor
};

// Cuts a tensor into the largest pieces for which fits(size) is true, along the outermost dimension
// that must be cut. `fits` is false for every box that holds a box for which it is. Nothing when
// even the smallest piece does not fit.
std::optional<PiecePlan> PlanPieces(const BlockGrid& grid, Cut cut,
                                    absl::FunctionRef<bool(const Shape& size)> fits);

}  // namespace quantd::cli

#endif  // QUANTD_CLI_GRID_H_
