// Which elements share a scale: every granularity of the requests becomes a block shape, and a
// block shape becomes a BlockLayout.
#ifndef QUANTD_SRC_PLAN_GRANULARITY_H_
#define QUANTD_SRC_PLAN_GRANULARITY_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "quantd/block_layout.h"
#include "quantd/parameters.h"

namespace quantd {

// Blocks over a shape, one entry a dimension of it. A dimension that one block covers has count 1,
// even when it is empty: an empty tensor has one scale per tensor, and D along an axis.
struct Blocks {
  Shape lengths;  // >= 1, at most the dimension (1 where that is empty)
  Shape counts;
};

// The blocks that a scale of shape `scale_shape` gives x. Errors name "x", "scale", "axis",
// "block_size" or "block_shape".
absl::StatusOr<Blocks> BlocksOfScale(const Granularity& granularity, const Shape& x_shape,
                                     const Shape& scale_shape);

// The blocks and the scale's shape that DynamicQuantize is asked for: [], [D], or one number a
// dimension.
struct RequestedBlocks {
  Blocks blocks;
  Shape scale_shape;
};
absl::StatusOr<RequestedBlocks> BlocksOfRequest(const Granularity& granularity,
                                                const Shape& x_shape);

// REQUIRES: blocks of `shape`, whose elements are fewer than 2^62.
BlockLayout MakeLayout(absl::Span<const int64_t> shape, const Blocks& blocks);

}  // namespace quantd

#endif  // QUANTD_SRC_PLAN_GRANULARITY_H_
