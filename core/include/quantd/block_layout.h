// Which elements of a tensor share a scale.
//
// Every granularity is a block shape over a row-major tensor: per tensor, one block covers the
// whole shape; per axis, blocks have length 1 on the axis and the whole length elsewhere; ONNX
// blocks have length B on the axis and 1 elsewhere; groups and tiles are as given.
#ifndef QUANTD_BLOCK_LAYOUT_H_
#define QUANTD_BLOCK_LAYOUT_H_

#include <cstdint>

#include "absl/container/inlined_vector.h"

namespace quantd {

// The block shape, with adjacent dimensions merged where that makes no difference. Dimensions of
// length 1 are dropped. A dimension is merged into the previous one if one block covers it
// entirely, or if the previous one has blocks of length 1 and the blocks of this one divide it. So
// per tensor is one dimension {N, N}, per last axis is {rows, rows}, {C, 1}, per axis in the middle
// is {outer, outer}, {C * inner, inner}, and blocks along the last axis without a short one are {N,
// B}.
struct BlockLayout {
  struct Dimension {
    int64_t length;        // >= 1
    int64_t block;         // 1 <= block <= length; the last block may be short
    int64_t scale_stride;  // distance in scales from one block to the next along this dimension
    int64_t blocks() const { return (length + block - 1) / block; }
  };
  // Outermost first; not empty (0-D: {1, 1}) unless the tensor is. The last dimension is contiguous
  // in memory, and the scales of its blocks are adjacent (scale_stride 1).
  absl::InlinedVector<Dimension, 6> dimensions;
  // Product of blocks(); 1 for a 0-D tensor; unspecified for an empty tensor.
  int64_t scale_count = 0;

  bool uniform() const { return scale_count == 1; }  // one scale for all elements
};

}  // namespace quantd

#endif  // QUANTD_BLOCK_LAYOUT_H_
