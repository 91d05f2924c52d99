// Random layouts of blocks, and the scale of each element by definition.
#ifndef QUANTD_TESTS_CORE_RANDOM_LAYOUT_H_
#define QUANTD_TESTS_CORE_RANDOM_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "quantd/block_layout.h"

namespace quantd {

// The scale of an element by plain division and remainder.
inline int64_t ScaleOf(const BlockLayout& layout, int64_t element) {
  int64_t scale = 0;
  for (size_t i = layout.dimensions.size(); i-- > 0;) {
    const BlockLayout::Dimension& dimension = layout.dimensions[i];
    scale += element % dimension.length / dimension.block * dimension.scale_stride;
    element /= dimension.length;
  }
  return scale;
}

struct RandomLayout {
  BlockLayout layout;
  int64_t elements = 1;
};

inline RandomLayout MakeLayout(std::mt19937& random) {
  RandomLayout made;
  const size_t rank = 1 + random() % 4;
  made.layout.scale_count = 1;
  std::vector<BlockLayout::Dimension> dimensions(rank);
  for (size_t i = rank; i-- > 0;) {
    const int64_t most = i + 1 == rank && random() % 2 == 0 ? 900 : 12;
    BlockLayout::Dimension& dimension = dimensions[i];
    dimension.length = 1 + static_cast<int64_t>(random() % most);
    dimension.block = 1 + static_cast<int64_t>(random() % dimension.length);
    if (random() % 4 == 0) dimension.block = 1;
    if (random() % 4 == 0) dimension.block = dimension.length;
    dimension.scale_stride = made.layout.scale_count;
    made.layout.scale_count *= dimension.blocks();
    made.elements *= dimension.length;
  }
  made.layout.dimensions.assign(dimensions.begin(), dimensions.end());
  return made;
}

}  // namespace quantd

#endif  // QUANTD_TESTS_CORE_RANDOM_LAYOUT_H_
