// Calibration: the bins in which values are counted.
//
// A value's bin is the upper 16 bits of its FLOAT: its sign, and its magnitude m, truncated to
// BFLOAT16. There are 128 bins per octave, so an edge is at most 2^-7 away from a value, and
// finding a bin is a shift (like a DDSketch whose logarithm comes from the format).
//
//   m            0 ... F    F + 1 ... M     M is the largest m seen
//   counted in   zero bin   one bin each    F = max(0, M - kWindow)
//
// So values of 2^-24 of the largest one or less share one bin, for both signs, and a channel has at
// most kSlots counts whatever its values are. M only grows, and bins that are not above F are
// then added to the zero bin; it does not matter when.
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
// The slot of NaN and infinities, which is never read: the one after the others.
inline constexpr uint16_t kNonFiniteSlot = kSlots;
// The first magnitude that is not a number: infinity.
inline constexpr int kInfiniteMagnitude = 0x7F80;

// The bin of a finite value, without its sign.
inline int Magnitude(float x) {
  return static_cast<int>((std::bit_cast<uint32_t>(x) & 0x7FFFFFFFu) >> 16);
}

// F of a channel whose largest bin is `top`.
inline int Floor(int top) { return std::max(0, top - kWindow); }

// The lower edge of bin m, which is the upper one of bin m - 1; that of infinity is 2^128.
// REQUIRES: 0 <= m <= kInfiniteMagnitude.
inline double Edge(int m) {
  if (m == kInfiniteMagnitude) return 0x1p128;
  return std::bit_cast<float>(static_cast<uint32_t>(m) << 16);
}

// The slot of bin m: slots are a ring in m, so that a moving window leaves the other bins in place.
// REQUIRES: m > F.
inline size_t Slot(int m, bool negative) {
  return 1 + static_cast<size_t>(m % kWindow) + (negative ? kWindow : 0);
}

// The slot of a value with these bits, in a channel with this F.
inline uint16_t SlotOf(uint32_t bits, int floor) {
  const int m = static_cast<int>((bits & 0x7FFFFFFFu) >> 16);
  if (m >= kInfiniteMagnitude) return kNonFiniteSlot;
  return m <= floor ? 0 : static_cast<uint16_t>(Slot(m, (bits >> 31) != 0));
}

}  // namespace quantd::rules

#endif  // QUANTD_SRC_RULES_BINS_H_
