// Scans of pieces, the INT8 that DynamicQuantize never gives, and histograms.
#include "scan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "absl/strings/str_cat.h"
#include "histogram.h"
#include "smallest_int8.h"

namespace quantd::cli {
namespace {

using ::testing::ElementsAre;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Against a loop over elements that knows nothing of runs, rows and lanes.
TEST(Scan, RandomPieces) {
  const uint32_t seed = std::random_device()();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 1000; ++round) {
    Shape shape;
    Granularity granularity;
    for (size_t d = 1 + random() % 4; d > 0; --d) {
      shape.push_back(1 + random() % 9);
      granularity.block_shape.push_back(random() % 3 == 0 ? -1 : 1 + random() % 4);
    }
    const BlockGrid grid = *DynamicGrid(shape, granularity);
    const auto plan = PlanPieces(grid, Cut::kAnywhere, [&](const Shape& size) {
      return Product(size) <= static_cast<int64_t>(1 + round % 200);
    });
    for (const Box& box : plan->pieces) {
      const Box blocks = grid.BlocksOf(box);
      const int64_t count = Product(box.size);
      std::vector<float> values(count);
      for (float& value : values) {
        value = static_cast<float>(static_cast<int>(random() % 2001) - 1000);
        if (round % 3 == 0 && random() % 10 == 0) value = random() % 2 == 0 ? kNan : -kInfinity;
      }
      std::vector<Range> ranges(Product(blocks.size));
      double signal = 0;
      uint64_t finite = 0;
      int64_t first = -1;
      for (int64_t n = 0; n < count; ++n) {
        int64_t rest = n, block = 0, stride = 1;
        for (size_t d = shape.size(); d-- > 0;) {
          const int64_t at = box.begin[d] + rest % box.size[d];
          rest /= box.size[d];
          block += (at / grid.block[d] - blocks.begin[d]) * stride;
          stride *= blocks.size[d];
        }
        if (!std::isfinite(values[n])) {
          if (first < 0) first = n;
          continue;
        }
        ++finite;
        signal += static_cast<double>(values[n]) * values[n];
        ranges[block].Add({values[n], values[n]});
      }
      const Scan scan = ScanPiece(values, box, grid);
      ASSERT_EQ(scan.first_non_finite, first);
      ASSERT_EQ(scan.finite, finite);
      ASSERT_EQ(scan.non_finite, count - finite);
      ASSERT_EQ(scan.signal, signal);  // whole numbers: exact in any order
      ASSERT_EQ(scan.ranges.size(), ranges.size());
      for (size_t i = 0; i < ranges.size(); ++i) {
        ASSERT_EQ(scan.ranges[i].minimum, ranges[i].minimum);
        ASSERT_EQ(scan.ranges[i].maximum, ranges[i].maximum);
      }
    }
  }
}

TEST(SmallestInt8, BecomesMinus127WithItsError) {
  const BlockGrid grid = *DynamicGrid({4}, {});
  // Scale 1, zero point -28: x = -99.5 rounds to -100, and -128 before the clamp.
  const std::vector<float> x = {-99.5f, 0, -kInfinity, kNan};
  std::string y = {-128, -28, -128, -128};
  QuantizationError error;
  error.mean_squared_error = 0.25 / 2;  // of two finite elements
  error.max_absolute_error = 0.5;
  error.saturated_elements = 1;  // the infinity
  ASSERT_TRUE(HasSmallestInt8(y));
  const std::vector<float> scale = {1}, zero_point = {-28};
  RaiseSmallestInt8(x, WholeBox({4}), grid, scale, zero_point, &y, &error);
  EXPECT_THAT(y, ElementsAre(-127, -28, -127, -127));
  EXPECT_FALSE(HasSmallestInt8(y));
  EXPECT_EQ(error.mean_squared_error, 0.25 / 2);  // -99.5 is as far from -99 as from -100
  EXPECT_EQ(error.max_absolute_error, 0.5);
  EXPECT_EQ(error.saturated_elements, 2u);
}

TEST(Histogram, CountsEveryValueOnce) {
  GrowingHistogram growing;
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  for (int i = 0; i < 10000; ++i) growing.Add(i % 10 == 0 ? 0 : normal(random) * std::exp2(i % 40));
  const Histogram histogram = growing.Between(16);
  uint64_t sum = 0;
  for (const uint64_t count : histogram.counts) sum += count;
  EXPECT_EQ(sum, 10000u);
  EXPECT_EQ(histogram.counts.size(), 16u);
  Histogram wide(-std::numeric_limits<double>::max(), std::numeric_limits<double>::max(), 2);
  wide.Add(-1e308);
  wide.Add(1e308);
  EXPECT_THAT(wide.counts, ElementsAre(1, 1));
}

}  // namespace
}  // namespace quantd::cli
