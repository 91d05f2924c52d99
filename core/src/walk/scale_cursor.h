// Brings the scales of a window into the form that kernels read.
//
//   ScaleCursor scales(walk, columns);
//   scales.Seek(begin);
//   scales.ForEach(window.elements, [&](const ScaleCursor::Piece& piece) {
//     ... one kernel call ...
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
#ifndef QUANTD_SRC_WALK_SCALE_CURSOR_H_
#define QUANTD_SRC_WALK_SCALE_CURSOR_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/kernel_table.h"
#include "walk/block_walk.h"

namespace quantd {

class ScaleCursor {
 public:
  static constexpr size_t kMaxColumns = 5;
  // Most elements of one ForEach when scales are copied out.
  static constexpr int64_t kCopyWindow = 1024;
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

  static bool CopiesOut(const BlockWalk& walk) { return walk.row() < kShortRow && !walk.one_row(); }
  static ScaleMode Mode(const BlockWalk& walk) {
    const bool one_each = walk.block() == 1 && walk.row() > 1;
    return one_each || CopiesOut(walk) ? ScaleMode::kPerElement : ScaleMode::kRuns;
  }

  // `columns` have one entry a scale and must outlive the cursor.
  ScaleCursor(const BlockWalk& walk, const Columns& columns)
      : walk_(walk),
        columns_(columns),
        copies_out_(CopiesOut(walk)),
        one_each_(Mode(walk) == ScaleMode::kPerElement) {}

  // Most elements that ForEach takes, given that the caller could take `most`.
  int64_t Most(int64_t most) const { return copies_out_ ? std::min(most, kCopyWindow) : most; }

  // Goes to an element of the tensor; up to `end` will be asked for.
  void Seek(int64_t element, int64_t end);

  // Calls body(piece) for the next `elements`, in order. REQUIRES: elements <= Most(elements).
  template <typename Body>
  void ForEach(int64_t elements, Body&& body) {
    if (copies_out_) {
      body(CopiedPiece(elements));
      return;
    }
    for (int64_t offset = 0; offset < elements;) {
      const Segment segment = walk_.Next(elements - offset);
      Piece piece{offset, static_cast<size_t>(segment.elements), 0, 1, At(segment.scale)};
      if (!one_each_) {
        // A piece never leaves its row, so a block as long as the row has no end here: the kernel
        // need not look for one.
        const bool endless = walk_.block() == walk_.row();
        piece.run = endless ? SIZE_MAX : static_cast<size_t>(walk_.block());
        piece.first = endless ? 0 : static_cast<size_t>(segment.phase);
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
  Piece CopiedPiece(int64_t elements);
  // Copies the scales of the next elements to entries 0 to elements - 1.
  void Expand(int64_t elements);
  // Whether one copy serves the whole task.
  bool CopiesOnce() const { return copies_out_ && walk_.period() > 0; }

  BlockWalk walk_;
  const Columns columns_;
  const bool copies_out_;
  const bool one_each_;
  int64_t phase_ = 0;  // where in the copied period the next element is
  // Not initialised: written by Expand before it is read.
  static constexpr int64_t kOvershoot = 4;  // Expand writes four entries at a time
  using Expanded = std::array<uint32_t, kCopyWindow + kShortRow + kOvershoot>;
  alignas(64) std::array<Expanded, kMaxColumns> expanded_;
};

}  // namespace quantd

#endif  // QUANTD_SRC_WALK_SCALE_CURSOR_H_
