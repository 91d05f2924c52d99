// Walks the elements of a tensor in order and finds the scale of each.
//
//   BlockWalk walk(layout);
//   walk.Seek(begin);
//   Segment segment = walk.Next(most);   // segment.elements elements of one row
//
// A row is the layout's last dimension: its blocks are contiguous in memory, and so are their
// scales. Counters are kept, so a step needs no division.
#ifndef QUANTD_SRC_WALK_BLOCK_WALK_H_
#define QUANTD_SRC_WALK_BLOCK_WALK_H_

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "quantd/block_layout.h"

namespace quantd {

// Neighbouring elements of one row.
struct Segment {
  int64_t elements;  // >= 1
  int64_t scale;     // index of the first element's scale; that of the next block is scale + 1
  int64_t phase;     // offset of the first element in its block
};

class BlockWalk {
 public:
  // Indices of scales count from `first_scale`, the lowest scale of all visited elements. REQUIRES:
  // the tensor is not empty.
  explicit BlockWalk(const BlockLayout& layout, int64_t first_scale = 0);

  int64_t row() const { return row_; }      // elements of a row
  int64_t block() const { return block_; }  // elements of a block along the row
  // The number of elements after which the scales repeat, if that is one row; otherwise 0.
  int64_t period() const { return period_; }
  // Whether the tensor is one row: the elements of scale i follow those of scale i - 1.
  bool one_row() const { return outer_.empty(); }

  // Moves to an element of the tensor.
  void Seek(int64_t element);
  int64_t column() const { return column_; }
  // The next elements: up to `most`, or to the end of the row. REQUIRES: most >= 1, not at the end.
  Segment Next(int64_t most);

 private:
  struct Outer {
    int64_t length;
    int64_t block;
    int64_t stride;
    int64_t index;     // along this dimension
    int64_t in_block;  // index % block
  };

  void NextRow();

  absl::InlinedVector<Outer, 4> outer_;
  int64_t row_ = 1;
  int64_t block_ = 1;
  int64_t period_ = 0;
  const int64_t first_scale_;
  int64_t base_;        // scale of the row's first element
  int64_t column_ = 0;  // of the next element
  int64_t run_ = 0;     // column / block
  int64_t in_run_ = 0;  // column % block
};

}  // namespace quantd

#endif  // QUANTD_SRC_WALK_BLOCK_WALK_H_
