#include "walk/block_walk.h"

#include <algorithm>

namespace quantd {

BlockWalk::BlockWalk(const BlockLayout& layout, int64_t first_scale)
    : first_scale_(first_scale), base_(-first_scale) {
  if (layout.uniform() || layout.dimensions.empty()) {
    row_ = 1;
    for (const BlockLayout::Dimension& dimension : layout.dimensions) row_ *= dimension.length;
    block_ = row_;
    period_ = row_;
    return;
  }
  const size_t last = layout.dimensions.size() - 1;
  row_ = layout.dimensions[last].length;
  block_ = layout.dimensions[last].block;
  bool periodic = true;
  for (size_t i = 0; i < last; ++i) {
    const BlockLayout::Dimension& dimension = layout.dimensions[i];
    outer_.push_back({dimension.length, dimension.block, dimension.scale_stride, 0, 0});
    periodic &= dimension.block == dimension.length;
  }
  period_ = periodic ? row_ : 0;
}

void BlockWalk::Seek(int64_t element) {
  int64_t rest = element / row_;
  column_ = element % row_;
  run_ = column_ / block_;
  in_run_ = column_ % block_;
  base_ = -first_scale_;
  for (size_t i = outer_.size(); i-- > 0;) {
    Outer& outer = outer_[i];
    outer.index = rest % outer.length;
    rest /= outer.length;
    outer.in_block = outer.index % outer.block;
    base_ += outer.index / outer.block * outer.stride;
  }
}

void BlockWalk::NextRow() {
  column_ = 0;
  run_ = 0;
  in_run_ = 0;
  for (size_t i = outer_.size(); i-- > 0;) {
    Outer& outer = outer_[i];
    if (++outer.index < outer.length) {
      if (++outer.in_block == outer.block) {
        outer.in_block = 0;
        base_ += outer.stride;
      }
      return;
    }
    base_ -= (outer.length - 1) / outer.block * outer.stride;
    outer.index = 0;
    outer.in_block = 0;
  }
}

Segment BlockWalk::Next(int64_t most) {
  Segment segment;
  segment.elements = std::min(most, row_ - column_);
  segment.scale = base_ + run_;
  segment.phase = in_run_;
  column_ += segment.elements;
  if (column_ == row_) {
    NextRow();
    return segment;
  }
  if (segment.elements < block_ - in_run_) {
    in_run_ += segment.elements;
  } else {
    run_ = column_ / block_;
    in_run_ = column_ % block_;
  }
  return segment;
}

}  // namespace quantd
