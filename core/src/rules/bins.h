// Calibration: the bins that values are counted in.
//
// A value's bin is the upper 16 bits of its FLOAT: its sign, and its magnitude m, which is that of
// the truncation to BFLOAT16. 128 bins an octave, so an edge is at most 2^-7 away from a value, and
// finding a bin is a shift (a DDSketch whose logarithm the format has taken).
//
//   m            0 ... F    F + 1 ... M     M is the largest that was seen
//   counted in   zero bin   one bin each    F = max(0, M - kWindow)
//
// So what is 2^-24 of the largest value or less is one bin, of both signs, and a channel has at
// most kSlots counts whatever its values are. M only grows, and bins that fall behind F join the
// zero bin then: when that happens does not matter.
#ifndef QUANTD_SRC_RULES_BINS_H_
#define QUANTD_SRC_RULES_BINS_H_

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace quantd::rules {

// Bins of one sign that are kept apart: 24 octaves.
inline constexpr int kWindow = 3072;
// Counts of a channel: the zero bin, and the window of each sign.
inline constexpr size_t kSlots = 1 + 2 * kWindow;
// Where NaN and infinities go, which nobody reads: the slot behind the others.
inline constexpr uint16_t kNonFiniteSlot = kSlots;
// The first magnitude that is no number: the infinity.
inline constexpr int kInfiniteMagnitude = 0x7F80;

// The bin of a finite value without its sign.
inline int Magnitude(float x) {
  return static_cast<int>((std::bit_cast<uint32_t>(x) & 0x7FFFFFFFu) >> 16);
}

// F of a channel whose largest bin is `top`.
inline int Floor(int top) { return std::max(0, top - kWindow); }

// The lower edge of bin m, which is the upper one of bin m - 1; that of the infinity is 2^128.
// REQUIRES: 0 <= m <= kInfiniteMagnitude.
inline double Edge(int m) {
  if (m == kInfiniteMagnitude) return 0x1p128;
  return std::bit_cast<float>(static_cast<uint32_t>(m) << 16);
}

// Where bin m is counted: slots are a ring in m, so that a window that moves leaves the others
// where they are. REQUIRES: m > F.
inline size_t Slot(int m, bool negative) {
  return 1 + static_cast<size_t>(m % kWindow) + (negative ? kWindow : 0);
}

// Where a value with these bits is counted, of a channel with this F.
inline uint16_t SlotOf(uint32_t bits, int floor) {
  const int m = static_cast<int>((bits & 0x7FFFFFFFu) >> 16);
  if (m >= kInfiniteMagnitude) return kNonFiniteSlot;
  return m <= floor ? 0 : static_cast<uint16_t>(Slot(m, (bits >> 31) != 0));
}

}  // namespace quantd::rules

#endif  // QUANTD_SRC_RULES_BINS_H_
