// Calibration's kernels on every target against the scalar ones, and the scalar ones against the
// rules.
#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels_test_util.h"
#include "rules/bins.h"

namespace quantd {
namespace {

// Any bits, often at the edges of bins, of the window and of the finite numbers.
uint32_t HardBits(std::mt19937& random) {
  constexpr uint32_t kEdges[] = {0x00000000, 0x80000000, 0x0000FFFF, 0x00010000, 0x007FFFFF,
                                 0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x7F800001, 0x7FC00000,
                                 0xFFFFFFFF, 0x0C000000, 0x0BFFFFFF, 0x3F800000, 0x3F7FFFFF};
  switch (random() % 4) {
    case 0:
      return kEdges[random() % std::size(kEdges)];
    case 1:  // around a multiple of the window
      return ((random() % 11 * rules::kWindow + random() % 3 - 1) << 16 | (random() & 0x8000FFFF));
    case 2:
      return std::bit_cast<uint32_t>(std::normal_distribution<float>()(random));
    default:
      return random();
  }
}

class BinKernels : public ::testing::Test {
 protected:
  Bytes Values(size_t size, size_t misalignment) {
    Bytes x(size * sizeof(float), misalignment);
    const bool finite = random_() % 2 == 0;
    for (size_t i = 0; i < size; ++i) {
      uint32_t bits = HardBits(random_);
      if (finite && (bits & 0x7F800000u) == 0x7F800000u) bits &= 0x807FFFFFu;
      x.Set(i, bits);
    }
    return x;
  }
  uint16_t SomeFloor() {
    return static_cast<uint16_t>(random_() % 3 == 0 ? 0 : random_() % (0x7F80 - rules::kWindow));
  }

  std::mt19937 random_ = SeededRandom(20261122);
};

TEST_F(BinKernels, EveryUpperHalf) {
  std::vector<uint32_t> all(0x10000);
  for (uint32_t i = 0; i < all.size(); ++i) all[i] = i << 16 | (i * 40503 & 0xFFFF);
  const auto* const x = reinterpret_cast<const uint8_t*>(all.data());
  for (const KernelTable* table : TablesUnderTest()) {
    for (const uint16_t floor : {0, 1, 3072, 12345, rules::Floor(0x7F7F)}) {
      std::vector<uint16_t> want(all.size()), got(all.size());
      const std::vector<uint16_t> floors(all.size(), floor);
      ScalarKernels().find_slots(x, all.size(), floor, want.data());
      table->find_slots_each(x, all.size(), floors.data(), got.data());
      ASSERT_EQ(got, want) << table->name << " floor " << floor;
    }
  }
}

TEST_F(BinKernels, EveryLengthAndMisalignment) {
  for (size_t size = 0; size <= 200; ++size) {
    for (size_t variant = 0; variant < 12; ++variant) {
      const Bytes x = Values(size, (size * 3 + variant * 5) % 64);
      std::vector<float> lows(size), highs(size);
      std::vector<uint16_t> floors(size);
      for (size_t i = 0; i < size; ++i) {
        const bool unseen = random_() % 2 == 0;
        lows[i] = unseen ? kInfinity : std::normal_distribution<float>()(random_);
        highs[i] = unseen ? -kInfinity : lows[i] + 1;
        floors[i] = SomeFloor();
      }
      const uint16_t floor = SomeFloor();
      for (const KernelTable* table : TablesUnderTest()) {
        SCOPED_TRACE(testing::Message() << table->name << " size " << size);
        float low = kInfinity, high = -kInfinity, want_low = low, want_high = high;
        ASSERT_EQ(table->find_extremes(x.data(), size, &low, &high),
                  ScalarKernels().find_extremes(x.data(), size, &want_low, &want_high));
        ASSERT_EQ(low, want_low);
        ASSERT_EQ(high, want_high);

        std::vector<float> got_lows = lows, got_highs = highs, want_lows = lows, want_highs = highs;
        ASSERT_EQ(table->find_extremes_each(x.data(), size, got_lows.data(), got_highs.data()),
                  ScalarKernels().find_extremes_each(x.data(), size, want_lows.data(),
                                                     want_highs.data()));
        ASSERT_EQ(got_lows, want_lows);
        ASSERT_EQ(got_highs, want_highs);

        GuardedBytes got(size * 2, variant), want(size * 2, 0);
        const auto slots = [&](GuardedBytes& bytes) {
          return reinterpret_cast<uint16_t*>(bytes.data());
        };
        const auto sorted = [&](GuardedBytes& bytes) {
          std::vector<uint16_t> all(slots(bytes), slots(bytes) + size);
          std::sort(all.begin(), all.end());
          return all;
        };
        if (variant % 2 == 1) continue;  // (slots have even addresses)
        table->find_slots_each(x.data(), size, floors.data(), slots(got));
        ScalarKernels().find_slots_each(x.data(), size, floors.data(), slots(want));
        ASSERT_TRUE(std::equal(slots(got), slots(got) + size, slots(want)));
        table->find_slots(x.data(), size, floor, slots(got));
        ScalarKernels().find_slots(x.data(), size, floor, slots(want));
        ASSERT_EQ(sorted(got), sorted(want));
        ASSERT_TRUE(got.GuardsIntact());
      }
    }
  }
}

}  // namespace
}  // namespace quantd
