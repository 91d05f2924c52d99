// A part of a tensor, with the scales of its elements.
#ifndef QUANTD_SRC_WALK_PART_H_
#define QUANTD_SRC_WALK_PART_H_

#include <cstddef>
#include <cstdint>

#include "quantd/block_layout.h"

namespace quantd {

// Elements [begin, end). Their scales are among [first_scale, first_scale + scales).
struct Part {
  int64_t begin;
  int64_t end;
  size_t first_scale;
  size_t scales;

  int64_t elements() const { return end - begin; }
};

// Parts that begin at multiples of this many elements share no scale. If there is no smaller
// number, it is the number of all elements. REQUIRES: the tensor is not empty.
inline int64_t ElementsWithoutSharedScales(const BlockLayout& layout) {
  int64_t elements = layout.dimensions[0].block;
  for (size_t i = 1; i < layout.dimensions.size(); ++i) elements *= layout.dimensions[i].length;
  return elements;
}

// The part of elements [begin, end) with its contiguous scales; if it crosses a block of an outer
// dimension, with all scales of that block. REQUIRES: begin < end.
inline Part PartOf(const BlockLayout& layout, int64_t begin, int64_t end) {
  int64_t inner = 1;
  for (const BlockLayout::Dimension& dimension : layout.dimensions) inner *= dimension.length;
  int64_t first_rest = begin;
  int64_t last_rest = end - 1;
  int64_t scale = 0;
  for (size_t i = 0; i < layout.dimensions.size(); ++i) {
    const BlockLayout::Dimension& dimension = layout.dimensions[i];
    inner /= dimension.length;
    const int64_t first = first_rest / inner;
    const int64_t last = last_rest / inner;
    scale += first / dimension.block * dimension.scale_stride;
    if (first != last) {
      const int64_t blocks = last / dimension.block - first / dimension.block + 1;
      return {begin, end, static_cast<size_t>(scale),
              static_cast<size_t>(blocks * dimension.scale_stride)};
    }
    first_rest %= inner;
    last_rest %= inner;
  }
  return {begin, end, static_cast<size_t>(scale), 1};
}

}  // namespace quantd

#endif  // QUANTD_SRC_WALK_PART_H_
