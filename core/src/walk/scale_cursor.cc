#include "walk/scale_cursor.h"

#include <cstring>

namespace quantd {

void ScaleCursor::Seek(int64_t element, int64_t end) {
  if (!CopiesOnce()) {
    walk_.Seek(element);
    return;
  }
  // Entry i belongs to column i of the row; a window starts in the first period.
  phase_ = element % walk_.period();
  walk_.Seek(0);
  Expand(std::min(kCopyWindow + walk_.period(), end - element + phase_));
}

ScaleCursor::Piece ScaleCursor::CopiedPiece(int64_t elements) {
  int64_t start = 0;
  if (CopiesOnce()) {
    start = phase_;
    phase_ = (phase_ + elements) % walk_.period();
  } else {
    Expand(elements);
  }
  Piece piece{0, static_cast<size_t>(elements), 0, 1, {}};
  for (size_t i = 0; i < kMaxColumns; ++i) {
    if (columns_[i] != nullptr) piece.columns[i] = expanded_[i].data() + start;
  }
  return piece;
}

namespace {

// `size` copies of the 32 bits at `from`, and up to three beyond: rows of a few elements are the
// rule here, and whole vectors take no loop.
void Fill(const unsigned char* from, uint32_t* to, int64_t size) {
  uint32_t value;
  std::memcpy(&value, from, sizeof(value));
  const uint32_t four[4] = {value, value, value, value};
  for (int64_t i = 0; i < size; i += 4) std::memcpy(to + i, four, sizeof(four));
}

}  // namespace

void ScaleCursor::Expand(int64_t elements) {
  for (int64_t at = 0; at < elements;) {
    const Segment segment = walk_.Next(elements - at);
    const Columns from = At(segment.scale);
    const int64_t first = std::min(segment.elements, walk_.block() - segment.phase);
    for (size_t column = 0; column < kMaxColumns; ++column) {
      if (from[column] == nullptr) continue;
      const auto* source = static_cast<const unsigned char*>(from[column]);
      uint32_t* to = expanded_[column].data() + at;
      if (walk_.block() == 1) {
        std::memcpy(to, source, static_cast<size_t>(segment.elements) * sizeof(uint32_t));
        continue;
      }
      uint32_t* const end = to + segment.elements;
      Fill(source, to, first);
      for (to += first; to < end; to += walk_.block()) {
        source += sizeof(uint32_t);
        Fill(source, to, std::min<int64_t>(walk_.block(), end - to));
      }
    }
    at += segment.elements;
  }
}

}  // namespace quantd
