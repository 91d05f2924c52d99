// Brings the scales of a window into the form that kernels read.
//
//   ScaleCursor scales(walk, columns);
//   scales.Seek(begin);
//   scales.ForEach(window.elements, [&](const ScaleCursor::Piece& piece) { ... one kernel call ...
//   });
//
// A column is an array of one 32-bit value a scale (the scale itself, its reciprocal, a zero point,
// ...). Long rows are one piece a row, straight from the columns:
//
//   ScaleMode::kRuns        blocks of two elements and more along the row
//   ScaleMode::kPerElement  blocks of one element
//
// Rows too short to be worth a call each (3 channels, last) have their scales copied out, one an
// element, so that one kPerElement call covers many rows. Where every row has the same scales the
// copy is made once a task.
#ifndef QUANTD_SRC_EXECUTE_SCALES_H_
#define QUANTD_SRC_EXECUTE_SCALES_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "execute/blocks.h"
#include "kernels/kernel_table.h"

namespace quantd {

class ScaleCursor {
 public:
  static constexpr size_t kMaxColumns = 6;
  // Most elements of one ForEach when rows are short.
  static constexpr int64_t kShortWindow = 1024;
  // Shorter rows are not worth a call each.
  static constexpr int64_t kShortRow = 256;

  using Columns = std::array<const void*, kMaxColumns>;  // null: not used

  // What one kernel call covers.
  struct Piece {
    int64_t offset;  // of its first element in the window
    size_t size;
    size_t first;  // as in QuantizeTile
    size_t run;
    Columns columns;  // at the first element's entry

    const float* floats(size_t column) const { return static_cast<const float*>(columns[column]); }
    const int32_t* ints(size_t column) const {
      return static_cast<const int32_t*>(columns[column]);
    }
  };

  static bool ShortRows(const BlockWalk& walk) { return walk.row() < kShortRow && !walk.one_row(); }
  static ScaleMode Mode(const BlockWalk& walk) {
    return walk.block() == 1 || ShortRows(walk) ? ScaleMode::kPerElement : ScaleMode::kRuns;
  }

  // `columns` have one entry a scale and must outlive the cursor.
  ScaleCursor(const BlockWalk& walk, const Columns& columns)
      : walk_(walk), columns_(columns), short_rows_(ShortRows(walk)) {}

  // Most elements that ForEach takes, given that the caller could take `most`.
  int64_t Most(int64_t most) const { return short_rows_ ? std::min(most, kShortWindow) : most; }

  // Goes to an element of the tensor; up to `end` will be asked for.
  void Seek(int64_t element, int64_t end);

  // Calls body(piece) for the next `elements`, in order. REQUIRES: elements <= Most(elements).
  template <typename Body>
  void ForEach(int64_t elements, Body&& body) {
    if (short_rows_) {
      body(ShortRowsPiece(elements));
      return;
    }
    const bool one_each = walk_.block() == 1;
    for (int64_t offset = 0; offset < elements;) {
      const Segment segment = walk_.Next(elements - offset);
      Piece piece{offset, static_cast<size_t>(segment.elements), 0, 1, At(segment.scale)};
      if (!one_each) {
        piece.run = static_cast<size_t>(walk_.block());
        piece.first = static_cast<size_t>(segment.phase);
      }
      body(piece);
      offset += segment.elements;
    }
  }

 private:
  Columns At(int64_t scale) const {
    Columns at{};
    for (size_t i = 0; i < kMaxColumns; ++i) {
      if (columns_[i] != nullptr) at[i] = static_cast<const uint32_t*>(columns_[i]) + scale;
    }
    return at;
  }
  Piece ShortRowsPiece(int64_t elements);
  // Copies the scales of the next elements to entries 0 to elements - 1.
  void Expand(int64_t elements);

  BlockWalk walk_;
  const Columns columns_;
  const bool short_rows_;
  int64_t phase_ = 0;  // where in the copied period the next element is
  // Not initialised: written by Expand before it is read.
  alignas(64) std::array<std::array<uint32_t, kShortWindow + kShortRow>, kMaxColumns> expanded_;
};

}  // namespace quantd

#endif  // QUANTD_SRC_EXECUTE_SCALES_H_
