// Which elements of a tensor share a scale.
//
// Every granularity is one idea, a block shape over a row-major tensor: per tensor is one block of
// the whole shape, per axis has length 1 on the axis and the whole length elsewhere, ONNX blocks
// have B on the axis and 1 elsewhere, groups and tiles are as given.
#ifndef QUANTD_BLOCK_LAYOUT_H_
#define QUANTD_BLOCK_LAYOUT_H_

#include <cstdint>

#include "absl/container/inlined_vector.h"

namespace quantd {

// The block shape, with adjacent dimensions merged where that changes nothing: dimensions of length
// 1 vanish; a dimension is merged into the one before it when one block covers it whole, or when
// the one before has blocks of length 1 and this one's blocks divide it. So per tensor is one
// dimension {N, N}, per last axis is {rows, rows}, {C, 1}, per axis in the middle is {outer,
// outer}, {C * inner, inner}, and blocks along the last axis without a short one are {N, B}.
struct BlockLayout {
  struct Dimension {
    int64_t length;        // >= 1
    int64_t block;         // 1 <= block <= length; the last block may be short
    int64_t scale_stride;  // distance in scales from one block to the next along this dimension
    int64_t blocks() const { return (length + block - 1) / block; }
  };
  // Outermost first; never empty unless the tensor is (0-D: {1, 1}). The last dimension is
  // contiguous in memory and its blocks' scales are neighbours (scale_stride 1).
  absl::InlinedVector<Dimension, 6> dimensions;
  // Product of blocks(); 1 for a 0-D tensor; of an empty tensor any number.
  int64_t scale_count = 0;

  bool uniform() const { return scale_count == 1; }  // one scale for all elements
};

}  // namespace quantd

#endif  // QUANTD_BLOCK_LAYOUT_H_
