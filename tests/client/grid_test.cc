// Grids of scales, and cutting tensors into pieces.
#include "grid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "absl/strings/str_cat.h"
#include "pieces.h"

namespace quantd::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Granularity Axis(int64_t axis) {
  Granularity granularity;
  granularity.axis = axis;
  return granularity;
}

Granularity Blocks(Shape block_shape) {
  Granularity granularity;
  granularity.block_shape = std::move(block_shape);
  return granularity;
}

TEST(DynamicGrid, HasTheScaleShapesOfTheContract) {
  EXPECT_THAT(DynamicGrid({3, 4}, {})->scale_shape, IsEmpty());
  EXPECT_THAT(DynamicGrid({3, 4}, Axis(-1))->scale_shape, ElementsAre(4));
  EXPECT_THAT(DynamicGrid({3, 70}, Blocks({-1, 32}))->scale_shape, ElementsAre(1, 3));
  Granularity blocked = Axis(0);
  blocked.block_size = 2;
  EXPECT_THAT(DynamicGrid({3, 4}, blocked)->scale_shape, ElementsAre(2, 4));
  EXPECT_EQ(DynamicGrid({0, 4}, {})->scales, 1);
  EXPECT_EQ(DynamicGrid({}, {})->scales, 1);
}

TEST(DynamicGrid, RefusesInWords) {
  EXPECT_THAT(DynamicGrid({3, 4}, Axis(2)).status().message(),
              HasSubstr("axis is 2, x has 2 dimensions"));
  EXPECT_THAT(DynamicGrid({3, 4}, Blocks({1})).status().message(),
              HasSubstr("block_shape has 1 lengths, x has 2"));
  EXPECT_THAT(DynamicGrid({3, 4}, Blocks({0, 1})).status().message(), HasSubstr("block_shape[0]"));
  Granularity both = Blocks({1, 1});
  both.axis = 0;
  EXPECT_FALSE(DynamicGrid({3, 4}, both).ok());
}

TEST(ScaleGrid, FollowsTheScalesShape) {
  EXPECT_EQ(ScaleGrid({3, 4}, {}, {})->scales, 1);
  EXPECT_EQ(ScaleGrid({3, 4}, {1}, Axis(7))->scales, 1);  // axis is not looked at
  EXPECT_EQ(ScaleGrid({3, 4}, {4}, {})->scales, 4);       // axis 1 unless said otherwise
  EXPECT_THAT(ScaleGrid({6, 4}, {3, 2}, {})->block, ElementsAre(2, 2));  // groups
  EXPECT_THAT(ScaleGrid({3, 4}, {3}, {}).status().message(),
              HasSubstr("scale has shape [3], x [3, 4] needs [4]"));
  EXPECT_THAT(ScaleGrid({6, 4}, {4, 2}, {}).status().message(), HasSubstr("do not divide"));
}

// Pieces cover every element once; each is within the limit; along each dimension it holds whole
// blocks or lies within one; and what the request says of its blocks is what the whole said.
TEST(PlanPieces, RandomTensors) {
  const uint32_t seed = std::random_device()();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937 random(seed);
  int cut = 0;
  for (int round = 0; round < 3000; ++round) {
    Shape shape, block;
    for (size_t d = random() % 5; d > 0; --d) {
      shape.push_back(1 + random() % 9);
      block.push_back(random() % 3 == 0 ? -1 : 1 + random() % 4);
    }
    const BlockGrid grid = *DynamicGrid(shape, shape.empty() ? Granularity() : Blocks(block));
    const Cut where = random() % 2 == 0 ? Cut::kAnywhere : Cut::kBetweenBlocks;
    const int64_t most = 1 + random() % 60;
    const auto fits = [&](const Shape& size) { return Product(size) <= most; };
    const std::optional<PiecePlan> plan = PlanPieces(grid, where, fits);
    if (!plan.has_value()) {
      ASSERT_EQ(where, Cut::kBetweenBlocks);
      ASSERT_GT(Product(grid.block), most);
      continue;
    }
    cut += plan->pieces.size() > 1;
    std::set<int64_t> seen;
    const Shape strides = RowMajorStrides(shape);
    for (const Box& box : plan->pieces) {
      ASSERT_TRUE(fits(box.size));
      for (size_t d = 0; d < shape.size(); ++d) {
        const int64_t end = box.begin[d] + box.size[d], b = grid.block[d];
        const bool whole = box.begin[d] % b == 0 && (end % b == 0 || end == shape[d]);
        ASSERT_TRUE(whole || (where == Cut::kAnywhere && box.begin[d] / b == (end - 1) / b));
        const int64_t said = grid.PieceBlockShape(box)[d];
        ASSERT_EQ(said == -1 ? 1 : (box.size[d] + said - 1) / said, grid.BlocksOf(box).size[d]);
      }
      for (int64_t n = 0; n < Product(box.size); ++n) {
        int64_t rest = n, flat = 0;
        for (size_t d = shape.size(); d-- > 0;) {
          flat += (box.begin[d] + rest % box.size[d]) * strides[d];
          rest /= box.size[d];
        }
        ASSERT_TRUE(seen.insert(flat).second);
      }
    }
    ASSERT_EQ(static_cast<int64_t>(seen.size()), Product(shape));
  }
  EXPECT_GT(cut, 500);
}

TEST(CutTensor, KeepsWithinTheServersLimits) {
  const BlockGrid grid = *DynamicGrid({1000, 1000}, {});
  const PieceCost cost{32, 0, 8, 0};
  const auto pieces = [&](const PieceLimits& limits) {
    return CutTensor(grid, Cut::kAnywhere, cost, limits, true)->pieces.size();
  };
  EXPECT_EQ(pieces({64 << 20, 0, 0}), 1u);
  EXPECT_EQ(pieces({1 << 20, 0, 0}), 4u);
  EXPECT_EQ(pieces({64 << 20, 0, 1 << 20}), 4u);
  EXPECT_EQ(pieces({64 << 20, 3 << 20, 0}), 2u);  // request and answer share the memory
  // One scale for all: a piece is the whole, larger than asked for or not at all.
  EXPECT_EQ(CutTensor(grid, Cut::kBetweenBlocks, cost, {64 << 20, 0, 1 << 20}, true)->pieces.size(),
            1u);
  EXPECT_FALSE(CutTensor(grid, Cut::kBetweenBlocks, cost, {64 << 20, 0, 1 << 20}, false).ok());
  EXPECT_THAT(CutTensor(grid, Cut::kBetweenBlocks, cost, {1 << 20, 0, 0}, true).status().message(),
              HasSubstr("--max_message_bytes"));
}

}  // namespace
}  // namespace quantd::cli
