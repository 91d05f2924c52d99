// Which elements share a scale: converts every granularity of requests to a block shape, and a
// block shape to a BlockLayout.
#ifndef QUANTD_SRC_PLAN_GRANULARITY_H_
#define QUANTD_SRC_PLAN_GRANULARITY_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "quantd/block_layout.h"
#include "quantd/parameters.h"

namespace quantd {

// Blocks over a shape, with one entry per dimension. A dimension that one block covers has count 1,
// even if it is empty: an empty tensor has one scale per tensor, and D along an axis.
struct Blocks {
  Shape lengths;  // >= 1, at most the dimension (1 if that is empty)
  Shape counts;
};

// The blocks of x for a scale of shape `scale_shape`. Errors name "x", "scale", "axis",
// "block_size" or "block_shape".
absl::StatusOr<Blocks> BlocksOfScale(const Granularity& granularity, const Shape& x_shape,
                                     const Shape& scale_shape);

// The blocks and the scale's shape that a DynamicQuantize requests: [], [D], or one number per
// dimension.
struct RequestedBlocks {
  Blocks blocks;
  Shape scale_shape;
};
absl::StatusOr<RequestedBlocks> BlocksOfRequest(const Granularity& granularity,
                                                const Shape& x_shape);

// REQUIRES: the blocks are of `shape`, which has fewer than 2^62 elements.
BlockLayout MakeLayout(absl::Span<const int64_t> shape, const Blocks& blocks);

}  // namespace quantd

#endif  // QUANTD_SRC_PLAN_GRANULARITY_H_
