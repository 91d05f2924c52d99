// A part of a tensor whose scales no other part has.
#ifndef QUANTD_SRC_WALK_PART_H_
#define QUANTD_SRC_WALK_PART_H_

#include <cstddef>
#include <cstdint>

#include "quantd/block_layout.h"

namespace quantd {

// All of a tensor, or one part of several.
struct Part {
  int64_t begin;  // elements
  int64_t end;
  size_t first_scale;
  size_t scales;

  int64_t elements() const { return end - begin; }
};

// Parts that begin at multiples of this many elements share no scale. The number of all elements,
// when there is no smaller one. REQUIRES: the tensor is not empty.
inline int64_t ElementsWithoutSharedScales(const BlockLayout& layout) {
  int64_t elements = layout.dimensions[0].block;
  for (size_t i = 1; i < layout.dimensions.size(); ++i) elements *= layout.dimensions[i].length;
  return elements;
}

}  // namespace quantd

#endif  // QUANTD_SRC_WALK_PART_H_
