// The bins of calibration: in which one a value is counted, and between which edges it lies.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <set>

#include "rules/bins.h"

namespace quantd::rules {
namespace {

TEST(Bins, EdgesAreThoseOfBfloat16) {
  EXPECT_EQ(Edge(0), 0);
  EXPECT_EQ(Edge(1), 0x1p-133);
  EXPECT_EQ(Edge(0x3F80), 1);
  EXPECT_EQ(Edge(0x3F81), 1 + 0x1p-7);
  EXPECT_EQ(Edge(kInfiniteMagnitude - 1), 0x1.FEp127);
  EXPECT_EQ(Edge(kInfiniteMagnitude), 0x1p128);
}

TEST(Bins, AWindowHasSlotsOfItsOwn) {
  EXPECT_EQ(Floor(0), 0);
  EXPECT_EQ(Floor(kWindow), 0);
  EXPECT_EQ(Floor(kWindow + 1), 1);
  for (const int top : {kWindow, kWindow + 1, 2 * kWindow, 20'000, kInfiniteMagnitude - 1}) {
    std::set<size_t> slots = {0, kNonFiniteSlot};
    for (int m = Floor(top) + 1; m <= top; ++m) {
      slots.insert(Slot(m, false));
      slots.insert(Slot(m, true));
    }
    EXPECT_EQ(slots.size(), kSlots + 1) << "two have the same, top " << top;
    EXPECT_EQ(*slots.rbegin(), kNonFiniteSlot);
  }
}

// Every upper half of a FLOAT, with its smallest and its largest value.
TEST(Bins, EveryValueIsCountedBetweenItsEdges) {
  for (const int floor : {0, 1, 5000, Floor(kInfiniteMagnitude - 1)}) {
    for (uint32_t half = 0; half < 0x10000; ++half) {
      for (const uint32_t bits : {half << 16, half << 16 | 0xFFFF}) {
        const float value = std::bit_cast<float>(bits);
        const int m = static_cast<int>(half & 0x7FFF);
        if (!std::isfinite(value)) {
          ASSERT_EQ(SlotOf(bits, floor), kNonFiniteSlot) << value;
          continue;
        }
        ASSERT_EQ(Magnitude(value), m);
        ASSERT_GE(std::fabs(value), Edge(m));
        ASSERT_LT(std::fabs(value), Edge(m + 1));
        ASSERT_EQ(SlotOf(bits, floor), m <= floor ? 0 : Slot(m, std::signbit(value))) << value;
      }
    }
  }
}

}  // namespace
}  // namespace quantd::rules
