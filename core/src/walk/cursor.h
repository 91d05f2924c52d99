// Walks the elements of a tensor whose bytes lie in pieces, and hands out contiguous windows.
//
//   Cursor cursor(x, 32);                 // bits an element
//   cursor.Seek(task_begin);
//   while (cursor.element() < task_end) {
//     Cursor::Window window = cursor.Next(task_end, kMost, buffer);
//     ... window.elements elements at window.data ...
//   }
//
// Network slices are 8 to 64 KiB, start at any address, and cut elements in two:
//
//   slices   |...............|...............|......
//   windows  |in place   |gat|in place   |gat|in place
//
// A window inside one slice is used where it lies (so data may be misaligned for its type); only
// the few elements around a cut are gathered into the caller's buffer. Every window but the last is
// a multiple of kGroup elements, so from a start at such a multiple it begins and ends at whole
// bytes of 4- and 2-bit types, and its packed outputs do, too.
//
// Quantize of pieces of 8 KiB at odd addresses runs at 0.72 of one piece's rate, of 64 KiB at 0.95.
#ifndef QUANTD_SRC_WALK_CURSOR_H_
#define QUANTD_SRC_WALK_CURSOR_H_

#include <cstddef>
#include <cstdint>

#include "quantd/bytes.h"

namespace quantd {

class Cursor {
 public:
  // Elements that windows are multiples of: a cache line of 8-bit outputs.
  static constexpr int64_t kGroup = 64;
  // Elements that are gathered at most; 4 KiB of FLOAT stay in L1 beside what is made of them.
  static constexpr int64_t kTile = 1024;
  // Bytes of the caller's buffer: a tile of 32-bit elements.
  static constexpr size_t kBufferBytes = kTile * 4;

  struct Window {
    const uint8_t* data;  // first byte; element `begin` starts there
    int64_t begin;        // index of the first element in the tensor
    int64_t elements;     // >= 1
  };

  // `bytes` must outlive the cursor. `bits` is 2, 4, 8, 16 or 32.
  Cursor(const ByteChunks& bytes, int bits) : bytes_(bytes), bits_(bits) {}

  int64_t element() const { return element_; }

  // Goes to an element of the tensor. REQUIRES: a multiple of kGroup, if elements are narrower than
  // a byte.
  void Seek(int64_t element);

  // The next window: at most `most` elements, not beyond `end`. `buffer` has kBufferBytes and is
  // overwritten when the window is gathered.
  // REQUIRES: element() < end <= elements of the tensor; most >= kGroup and a multiple of it; end
  // as Seek's element, or the end of the tensor.
  Window Next(int64_t end, int64_t most, uint8_t* buffer);

 private:
  size_t BytesOf(int64_t elements) const { return static_cast<size_t>((elements * bits_ + 7) / 8); }
  // Elements that lie whole in this slice from here on, in groups unless `rest` ends them.
  int64_t InPlace(int64_t rest) const;
  void SkipFinished();

  const ByteChunks& bytes_;
  const int bits_;
  int64_t element_ = 0;
  size_t chunk_ = 0;   // the slice that holds the next byte
  size_t offset_ = 0;  // of that byte in the slice
};

}  // namespace quantd

#endif  // QUANTD_SRC_WALK_CURSOR_H_
