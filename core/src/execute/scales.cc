#include "execute/scales.h"

#include <cstring>

namespace quantd {

void ScaleCursor::Seek(int64_t element, int64_t end) {
  if (!short_rows_ || walk_.period() == 0) {
    walk_.Seek(element);
    return;
  }
  // Entry i belongs to column i of the row; a window starts in the first period.
  phase_ = element % walk_.period();
  walk_.Seek(0);
  Expand(std::min(kShortWindow + walk_.period(), end - element + phase_));
}

ScaleCursor::Piece ScaleCursor::ShortRowsPiece(int64_t elements) {
  int64_t start = 0;
  if (walk_.period() > 0) {
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

void ScaleCursor::Expand(int64_t elements) {
  for (int64_t at = 0; at < elements;) {
    const Segment segment = walk_.Next(elements - at);
    const Columns from = At(segment.scale);
    for (size_t i = 0; i < kMaxColumns; ++i) {
      if (from[i] == nullptr) continue;
      const auto* source = static_cast<const unsigned char*>(from[i]);
      uint32_t* out = expanded_[i].data() + at;
      int64_t run = std::min(segment.elements, walk_.block() - segment.phase);
      for (int64_t left = segment.elements; left > 0;) {
        uint32_t value;
        std::memcpy(&value, source, sizeof(value));
        std::fill_n(out, run, value);
        source += sizeof(value);
        out += run;
        left -= run;
        run = std::min(left, walk_.block());
      }
    }
    at += segment.elements;
  }
}

}  // namespace quantd
