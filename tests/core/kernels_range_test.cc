// Every Range kernel of the list, and find_non_finite, on every target against the scalar ones.
#include "kernels/find_kernel.h"
#include "kernels_test_util.h"

namespace quantd {
namespace kernels_range_test {

struct Row {
  const char* name;
  NonFinite non_finite;
};

const Row kRows[] = {
#define QUANTD_RANGE(non_finite) {#non_finite, NonFinite::non_finite},
#include "kernels/kernels.inc"
};

class RangeKernels : public ::testing::TestWithParam<Row> {
 protected:
  void ExpectSameAsScalar(RangeTile tile, ScaleMode mode) {
    const size_t ranges = tile.size + 2;
    std::vector<float> min(ranges), max(ranges);
    for (size_t i = 0; i < ranges; ++i) {
      min[i] = random_() % 2 == 0 ? 0.0f : -HardScale(random_, true) * HardScale(random_, true);
      max[i] = std::fabs(min[i]) / 2;
      min[i] = -std::fabs(min[i]);
    }
    std::vector<float> want_min = min, want_max = max;
    tile.min = want_min.data();
    tile.max = want_max.data();
    const bool want = FindRange(ScalarKernels(), GetParam().non_finite, mode)(tile);
    for (const KernelTable* table : TablesUnderTest()) {
      std::vector<float> got_min = min, got_max = max;
      tile.min = got_min.data();
      tile.max = got_max.data();
      const bool got = FindRange(*table, GetParam().non_finite, mode)(tile);
      ASSERT_EQ(got, want) << table->name << " size " << tile.size << " run " << tile.run;
      if (got && GetParam().non_finite == NonFinite::kReject) continue;
      ASSERT_EQ(got_min, want_min) << table->name << " size " << tile.size << " run " << tile.run;
      ASSERT_EQ(got_max, want_max) << table->name << " size " << tile.size << " run " << tile.run;
    }
  }

  std::mt19937 random_ = SeededRandom(20240605);
};

TEST_P(RangeKernels, EveryLengthAndMisalignment) {
  for (size_t size = 0; size <= 260; ++size) {
    for (size_t variant = 0; variant < 30; ++variant) {
      const ScaleMode mode = variant % 5 == 0 ? ScaleMode::kPerElement : ScaleMode::kRuns;
      RangeTile tile;
      tile.size = size;
      tile.run = kRunLengths[random_() % std::size(kRunLengths)];
      tile.first = random_() % 2 == 0 ? 0 : random_() % std::min<size_t>(tile.run, 300);
      Bytes x(size * sizeof(float), (size * 5 + variant * 11) % 64);
      const bool finite = variant % 2 == 0;
      for (size_t i = 0; i < size; ++i) {
        float value = HardValue(random_, 0.1f);
        while (finite && !std::isfinite(value)) value = HardValue(random_, 0.1f);
        x.Set(i, value);
      }
      tile.x = x.data();
      ASSERT_NO_FATAL_FAILURE(ExpectSameAsScalar(tile, mode));
    }
  }
}

// A single element that is not finite, of every kind, at every place.
TEST_P(RangeKernels, SeesEveryNonFinite) {
  constexpr size_t kSize = 150;
  const float quiet = std::numeric_limits<float>::quiet_NaN();
  const float signaling = std::bit_cast<float>(0x7F800001u);
  for (const float bad : {kInfinity, -kInfinity, quiet, -quiet, signaling, -signaling}) {
    for (size_t place = 0; place < kSize; ++place) {
      Bytes x(kSize * sizeof(float), 4);
      for (size_t i = 0; i < kSize; ++i) x.Set(i, static_cast<float>(i) - 70.0f);
      x.Set(place, bad);
      RangeTile tile;
      tile.x = x.data();
      tile.size = kSize;
      for (const size_t run : {SIZE_MAX / 2, size_t{32}, size_t{5}}) {
        tile.run = run;
        for (const ScaleMode mode : {ScaleMode::kRuns, ScaleMode::kPerElement}) {
          ASSERT_NO_FATAL_FAILURE(ExpectSameAsScalar(tile, mode)) << bad << " at " << place;
        }
      }
      for (const KernelTable* table : TablesUnderTest()) {
        ASSERT_EQ(table->find_non_finite(x.data(), kSize), place) << table->name;
        ASSERT_EQ(table->find_non_finite(x.data(), place), place) << table->name;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(List, RangeKernels, ::testing::ValuesIn(kRows),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace kernels_range_test
}  // namespace quantd
