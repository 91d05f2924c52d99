// Prepares the scales of a window in the form that kernels read.
//
//   using Scales = ScaleCursor<float, int32_t>;
//   Scales scales(walk, {scale, zero_point});
//   scales.Seek(begin, end);
//   scales.ForEach(window.elements, [&](const Scales::Piece& piece) {
//     ... one kernel call with piece.column<0>() and piece.column<1>() ...
//   });
//
// A column is an array of one value per scale (the scale itself, its reciprocal, a zero point,
// ...). Long rows are one piece each, directly from the columns:
//
//   ScaleMode::kRuns        blocks of two elements and more along the row
//   ScaleMode::kPerElement  blocks of one element
//
// For rows that are too short for a call each (3 channels, last), the scales are copied, one per
// element, so that one kPerElement call covers many rows. If every row has the same scales, the
// copy is made once per task.
#ifndef QUANTD_SRC_WALK_SCALE_CURSOR_H_
#define QUANTD_SRC_WALK_SCALE_CURSOR_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <utility>

#include "kernels/kernel_table.h"
#include "walk/block_walk.h"

namespace quantd {

// Shorter rows are not worth a call each.
inline constexpr int64_t kShortRow = 256;
inline bool HasShortRows(const BlockWalk& walk) {
  return walk.row() < kShortRow && !walk.one_row();
}

// How kernels find the scales of a walk's elements.
inline ScaleMode ScaleModeOf(const BlockWalk& walk) {
  const bool one_each = walk.block() == 1 && walk.row() > 1;
  return one_each || HasShortRows(walk) ? ScaleMode::kPerElement : ScaleMode::kRuns;
}

// `Values` are the types of the columns, of 32 bits each.
template <typename... Values>
class ScaleCursor {
 public:
  using Columns = std::tuple<const Values*...>;  // null: not used

  // The most elements of one ForEach if scales are copied.
  static constexpr int64_t kCopyWindow = 1024;

  // The elements of one kernel call.
  struct Piece {
    int64_t offset;  // of its first element in the window
    size_t size;
    size_t first;  // as in QuantizeTile
    size_t run;
    Columns columns;  // at the first element's entry

    template <size_t kColumn>
    auto column() const {
      return std::get<kColumn>(columns);
    }
  };

  // `columns` have one entry per scale and must outlive the cursor.
  ScaleCursor(const BlockWalk& walk, const Columns& columns)
      : walk_(walk),
        columns_(columns),
        copies_out_(HasShortRows(walk)),
        one_each_(ScaleModeOf(walk) == ScaleMode::kPerElement) {}

  // The most elements for one ForEach, given that the caller has `most`.
  int64_t Most(int64_t most) const { return copies_out_ ? std::min(most, kCopyWindow) : most; }

  // Moves to an element of the tensor; the caller will ask for elements up to `end`.
  void Seek(int64_t element, int64_t end) {
    if (!CopiesOnce()) {
      walk_.Seek(element);
      return;
    }
    // Entry i belongs to column i of the row; a window starts in the first period.
    phase_ = element % walk_.period();
    // A window that ends in its first row needs no scales before its first element.
    const int64_t first = end - element <= walk_.period() - phase_ ? phase_ : 0;
    walk_.Seek(first);
    Expand(first, std::min(kCopyWindow + walk_.period(), end - element + phase_));
  }

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
        // A piece never leaves its row, so a block as long as the row has no end here, and the
        // kernel need not check for one.
        const bool endless = walk_.block() == walk_.row();
        piece.run = endless ? SIZE_MAX : static_cast<size_t>(walk_.block());
        piece.first = endless ? 0 : static_cast<size_t>(segment.phase);
      }
      body(piece);
      offset += segment.elements;
    }
  }

 private:
  // Copied scales. Aligned, and not initialised, because Expand writes them before they are read.
  template <typename Value>
  struct alignas(64) Entries {
    static_assert(sizeof(Value) == 4);
    static constexpr int64_t kOvershoot = 4;  // Fill writes four entries at a time

    Entries() {}  // (a defaulted one would have a tuple fill it with 0)

    Value at[kCopyWindow + kShortRow + kOvershoot];
  };

  // Whether one copy serves the whole task.
  bool CopiesOnce() const { return copies_out_ && walk_.period() > 0; }

  Columns At(int64_t scale) const {
    return std::apply(
        [scale](const Values*... column) {
          return Columns((column == nullptr ? nullptr : column + scale)...);
        },
        columns_);
  }

  // Calls body(std::integral_constant<size_t, column>()) for the columns in use.
  template <typename Body>
  void ForEachColumn(Body body) const {
    const auto call = [&](auto column) {
      if (std::get<column>(columns_) != nullptr) body(column);
    };
    [&]<size_t... kColumns>(std::index_sequence<kColumns...>) {
      (call(std::integral_constant<size_t, kColumns>()), ...);
    }(std::index_sequence_for<Values...>());
  }

  Piece CopiedPiece(int64_t elements) {
    int64_t start = 0;
    if (CopiesOnce()) {
      start = phase_;
      phase_ = (phase_ + elements) % walk_.period();
    } else {
      Expand(0, elements);
    }
    Piece piece{0, static_cast<size_t>(elements), 0, 1, {}};
    ForEachColumn([&](auto column) {
      std::get<column>(piece.columns) = std::get<column>(expanded_).at + start;
    });
    return piece;
  }

  // Copies the scales of the next elements to entries `first` to end - 1.
  void Expand(int64_t first, int64_t end) {
    for (int64_t at = first; at < end;) {
      const Segment segment = walk_.Next(end - at);
      ForEachColumn([&](auto column) {
        Spread(std::get<column>(columns_) + segment.scale, segment,
               std::get<column>(expanded_).at + at);
      });
      at += segment.elements;
    }
  }

  // The scales of a segment, starting with that of its first element, one per element.
  template <typename Value>
  void Spread(const Value* from, const Segment& segment, Value* to) const {
    if (walk_.block() == 1) {
      std::copy_n(from, segment.elements, to);
      return;
    }
    Value* const end = to + segment.elements;
    int64_t size = std::min(segment.elements, walk_.block() - segment.phase);
    Fill(*from, size, to);
    for (to += size; to < end; to += size) {
      size = std::min<int64_t>(walk_.block(), end - to);
      Fill(*++from, size, to);
    }
  }

  // Writes `size` copies, and up to three more: rows usually have a few elements, and whole vectors
  // need no loop.
  template <typename Value>
  static void Fill(Value value, int64_t size, Value* to) {
    const Value four[4] = {value, value, value, value};
    for (int64_t i = 0; i < size; i += 4) std::memcpy(to + i, four, sizeof(four));
  }

  BlockWalk walk_;
  const Columns columns_;
  const bool copies_out_;
  const bool one_each_;
  int64_t phase_ = 0;  // the offset of the next element in the copied period
  std::tuple<Entries<Values>...> expanded_;
};

}  // namespace quantd

#endif  // QUANTD_SRC_WALK_SCALE_CURSOR_H_
