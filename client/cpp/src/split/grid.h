// Which elements share a scale, and how a tensor is cut into matching pieces.
//
// Every granularity is a block shape: blocks have a fixed length along each dimension, and the last
// one may be short. One scale for the tensor is one block; one scale per index along an axis has
// length 1 on the axis and the whole length elsewhere. A piece is a box of x that along each
// dimension either contains whole blocks or is inside of one; so its scales are a box of the grid
// of scales, and its request has a block_shape with the same meaning for fewer elements.
#ifndef QUANTD_CLIENT_CPP_SPLIT_GRID_H_
#define QUANTD_CLIENT_CPP_SPLIT_GRID_H_

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "boxes.h"
#include "quantd/client/options.h"

namespace quantd::client::split {

struct Grid {
  Dimensions shape;        // of x; no length is 0
  Dimensions block;        // length of a block along each dimension
  Dimensions counts;       // blocks along each dimension
  Dimensions scale_shape;  // of the scale tensor: [], [N] or counts
  int64_t scales = 1;

  // The blocks that `box` touches, as a box of the grid.
  Box BlocksOf(const Box& box) const;
  // The block_shape of a request that contains only `box`.
  Dimensions PieceBlockShape(const Box& box) const;
  // The elements of the block with this row-major number.
  Box BlockAt(int64_t number) const;

  // Visits all elements in order, in runs that are inside of a block: visit(number of the block,
  // first element, elements).
  template <typename Visit>
  void ForEachRun(Visit visit) const {
    size_t rank = shape.size();
    while (rank > 0 && counts[rank - 1] == 1) --rank;
    const auto tail = shape.begin() + static_cast<std::ptrdiff_t>(rank);
    const int64_t inner = Product({tail, shape.end()});
    if (rank == 0) return visit(int64_t{0}, int64_t{0}, inner);
    // Runs along dimension `last`; the numbers of their blocks follow from the dimensions before
    // it.
    const size_t last = rank - 1;
    const int64_t length = shape[last] * inner, run = block[last] * inner;
    const int64_t rows = Product({shape.begin(), tail - 1});
    Dimensions index(last, 0);
    for (int64_t row = 0; row < rows; ++row) {
      int64_t number = 0;
      for (size_t d = 0; d < last; ++d) number = number * counts[d] + index[d] / block[d];
      number *= counts[last];
      for (int64_t at = 0; at < length; at += run) {
        visit(number++, row * length + at, std::min(run, length - at));
      }
      for (size_t d = last; d > 0; --d) {
        if (++index[d - 1] < shape[d - 1]) break;
        index[d - 1] = 0;
      }
    }
  }
};

// INVALID_ARGUMENT with the field, like the server's.
absl::Status FieldError(absl::string_view field, absl::string_view message);

// The number of elements of x, after checks: its shape and its bytes match, and it is not
// empty.
absl::StatusOr<int64_t> CheckTensor(const Tensor& tensor, absl::string_view field);

// The grid of a request that computes its scales, and of one with given scales. Returns the same
// INVALID_ARGUMENT as the server. REQUIRES: x's shape was checked, and contains no 0.
absl::StatusOr<Grid> DynamicGrid(const Dimensions& shape, const Granularity& granularity);
absl::StatusOr<Grid> ScaleGrid(const Dimensions& shape, const Dimensions& scale_shape,
                               const Granularity& granularity);

// Where pieces may be cut: only between blocks (each piece computes its own scales), or wherever
// the scales of a piece can be expressed (the scales are given).
enum class Cut : uint8_t { kBetweenBlocks, kAnywhere };

// Cuts a tensor into the largest boxes for which fits(elements, scales) is true, along the
// outermost dimension that must be cut, in the order of their first elements. If `fits` is false
// for a size, it must be false for all larger ones. Returns nullopt if even the smallest box does
// not fit.
std::optional<std::vector<Box>> CutIntoBoxes(const Grid& grid, Cut cut,
                                             const std::function<bool(int64_t, int64_t)>& fits);

}  // namespace quantd::client::split

#endif  // QUANTD_CLIENT_CPP_SPLIT_GRID_H_
