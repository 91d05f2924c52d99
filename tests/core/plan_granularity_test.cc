// Granularities become blocks, blocks become layouts: every granularity by example, and merging
// against the scale index of each element computed from the unmerged blocks.
#include <numeric>
#include <random>

#include "gtest/gtest.h"
#include "oracle.h"
#include "plan/granularity.h"
#include "quantd/shape.h"
#include "tensors.h"

namespace quantd {
namespace {

Granularity Axis(int64_t axis, int64_t block_size = 0) {
  Granularity granularity;
  granularity.axis = axis;
  granularity.block_size = block_size;
  return granularity;
}

Granularity Tiles(Shape block_shape) {
  Granularity granularity;
  granularity.block_shape = std::move(block_shape);
  return granularity;
}

// "length/block*scale_stride ..." of the layout, and the number of scales.
std::string LayoutText(const BlockLayout& layout) {
  std::string text;
  for (const BlockLayout::Dimension& d : layout.dimensions) {
    text += std::to_string(d.length) + "/" + std::to_string(d.block) + "*" +
            std::to_string(d.scale_stride) + " ";
  }
  return text + "= " + std::to_string(layout.scale_count);
}

// Properties of the blocks of every granularity.
void ExpectBlocksOf(const Shape& x, const Blocks& blocks) {
  ASSERT_EQ(blocks.lengths.size(), x.size());
  ASSERT_EQ(blocks.counts.size(), x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_GE(blocks.lengths[i], 1) << ShapeString(x);
    EXPECT_LE(blocks.lengths[i], std::max<int64_t>(x[i], 1)) << ShapeString(x);
    if (x[i] == 0) continue;
    EXPECT_EQ(blocks.counts[i], (x[i] + blocks.lengths[i] - 1) / blocks.lengths[i]);
  }
}

std::string Layout(const Granularity& granularity, const Shape& x, const Shape& scale) {
  absl::StatusOr<Blocks> blocks = BlocksOfScale(granularity, x, scale);
  if (blocks.ok()) ExpectBlocksOf(x, *blocks);
  return blocks.ok() ? LayoutText(MakeLayout(x, *blocks)) : FieldAndNumbers(blocks.status());
}

TEST(Blocks, PerTensor) {
  for (const Shape& scale : {Shape{}, Shape{1}}) {
    EXPECT_EQ(Layout({}, {2, 3, 4}, scale), "24/24*1 = 1");
    EXPECT_EQ(Layout({}, {}, scale), "1/1*1 = 1");
    EXPECT_EQ(Layout({}, {1, 1}, scale), "1/1*1 = 1");
    EXPECT_EQ(Layout({}, {5}, scale), "5/5*1 = 1");
    EXPECT_EQ(Layout({}, {2, 0}, scale), "= 1");
    EXPECT_EQ(Layout(Axis(99), {2, 3}, scale), "6/6*1 = 1") << "axis is not looked at";
  }
}

TEST(Blocks, PerAxis) {
  EXPECT_EQ(Layout({}, {2, 3, 4}, {3}), "2/2*3 12/4*1 = 3") << "axis 1 by default";
  EXPECT_EQ(Layout(Axis(0), {2, 3, 4}, {2}), "24/12*1 = 2");
  EXPECT_EQ(Layout(Axis(-1), {2, 3, 4}, {4}), "6/6*4 4/1*1 = 4");
  EXPECT_EQ(Layout(Axis(-3), {2, 3, 4}, {2}), "24/12*1 = 2");
  EXPECT_EQ(Layout(Axis(0), {5}, {5}), "5/1*1 = 5");
  EXPECT_EQ(Layout(Axis(1), {2, 3, 1, 1}, {3}), "2/2*3 3/1*1 = 3");
  EXPECT_EQ(Layout(Axis(1), {0, 3}, {3}), "= 3");
  EXPECT_EQ(Layout(Axis(0), {0, 3}, {0}), "= 0");
  EXPECT_EQ(Layout({}, {2, 4}, {3}), "scale 3 4 1");
  EXPECT_EQ(Layout({}, {3}, {3}), "axis 1 1 -1 0");
  EXPECT_EQ(Layout(Axis(2), {2, 3}, {3}), "axis 2 2 -2 1");
  EXPECT_EQ(Layout(Axis(-3), {2, 3}, {3}).substr(0, 4), "axis");
  EXPECT_EQ(Layout(Axis(INT64_MIN), {2, 3}, {3}).substr(0, 4), "axis");
  EXPECT_EQ(Layout({}, {}, {3}), "axis 1");
}

TEST(Blocks, OnnxBlocks) {
  EXPECT_EQ(Layout(Axis(1, 2), {3, 4}, {3, 2}), "12/2*1 = 6");
  EXPECT_EQ(Layout(Axis(1, 2), {3, 5}, {3, 3}), "3/1*3 5/2*1 = 9") << "the last one is short";
  EXPECT_EQ(Layout(Axis(0, 2), {3, 4}, {2, 4}), "3/2*4 4/1*1 = 8");
  EXPECT_EQ(Layout(Axis(1, 2), {2, 4, 3}, {2, 2, 3}), "8/2*3 3/1*1 = 12");
  EXPECT_EQ(Layout(Axis(1, 100), {3, 4}, {3, 1}), "12/4*1 = 3") << "longer than the axis";
  EXPECT_EQ(Layout(Axis(1, INT64_MAX), {3, 4}, {3, 1}), "12/4*1 = 3");
  EXPECT_EQ(Layout(Axis(0, 4), {4}, {1}), "4/4*1 = 1") << "a scale of [1] follows the blocks";
  EXPECT_EQ(Layout(Axis(1, 1), {3, 4}, {3, 4}), "12/1*1 = 12");
  EXPECT_EQ(Layout(Axis(1, 1), {3, 4}, {3, 2}), "scale 3 2 1 1 3 4 3 4");
  EXPECT_EQ(Layout(Axis(1, 2), {0, 4}, {0, 2}), "= 0");
  EXPECT_EQ(Layout(Axis(0, 2), {8}, {1}), "scale 1 2 0 8 4");
  EXPECT_EQ(Layout(Axis(1, 2), {3, 4}, {}), "scale 2 1 3 4 3 2");
  EXPECT_EQ(Layout(Axis(1, 2), {3, 5}, {3, 2}), "scale 3 2 2 1 3 5 3 3");
  EXPECT_EQ(Layout(Axis(5, 2), {3, 4}, {3, 2}).substr(0, 4), "axis");
  EXPECT_EQ(Layout(Axis(1, -1), {3, 4}, {3, 2}), "block_size -1 1");
}

TEST(Blocks, Groups) {
  EXPECT_EQ(Layout({}, {4, 6}, {2, 3}), "4/2*3 6/2*1 = 6");
  EXPECT_EQ(Layout({}, {4, 6}, {1, 1}), "24/24*1 = 1");
  EXPECT_EQ(Layout({}, {4, 6}, {4, 2}), "24/3*1 = 8");
  EXPECT_EQ(Layout({}, {4, 6}, {4, 6}), "24/1*1 = 24");
  EXPECT_EQ(Layout(Axis(99), {4, 6}, {2, 3}), "4/2*3 6/2*1 = 6") << "axis is not looked at";
  EXPECT_EQ(Layout({}, {0, 6}, {0, 3}), "= 0");
  EXPECT_EQ(Layout({}, {0, 6}, {5, 3}), "= 15") << "5 divides 0";
  EXPECT_EQ(Layout({}, {4, 6}, {2, 4}), "scale 4 1 6");
  EXPECT_EQ(Layout({}, {4, 6}, {0, 3}), "scale 0 0 4");
  EXPECT_EQ(Layout({}, {4, 6}, {4, 12}).substr(0, 5), "scale");
  EXPECT_EQ(Layout({}, {4, 6}, {1, 4, 6}), "scale 3 1 4 6 2 4 6");
}

TEST(Blocks, BlockShape) {
  EXPECT_EQ(Layout(Tiles({128, 128}), {300, 200}, {3, 2}), "300/128*2 200/128*1 = 6");
  EXPECT_EQ(Layout(Tiles({-1, -1}), {4, 6}, {1, 1}), "24/24*1 = 1");
  EXPECT_EQ(Layout(Tiles({-1, 1}), {4, 6}, {1, 6}), "4/4*6 6/1*1 = 6");
  EXPECT_EQ(Layout(Tiles({1, 100}), {4, 6}, {4, 1}), "24/6*1 = 4");
  EXPECT_EQ(Layout(Tiles({-1, 2}), {0, 6}, {1, 3}), "= 3");
  EXPECT_EQ(Layout(Tiles({2, 2}), {0, 6}, {0, 3}), "= 0");
  EXPECT_EQ(Layout(Tiles({2, 2}), {4, 6}, {2, 2}), "scale 2 2 2 2 4 6 2 3");
  EXPECT_EQ(Layout(Tiles({4, 6}), {4, 6}, {1}), "scale 1 4 6 4 6 1 1");
  EXPECT_EQ(Layout(Tiles({2}), {4, 6}, {2, 3}), "block_shape 1 2");
  EXPECT_EQ(Layout(Tiles({2, 0}), {4, 6}, {2, 3}), "block_shape 1 0 -1 6 1");
  EXPECT_EQ(Layout(Tiles({2, -2}), {4, 6}, {2, 3}).substr(0, 11), "block_shape");
  Granularity both = Tiles({2, 2});
  both.axis = 0;
  EXPECT_EQ(Layout(both, {4, 6}, {2, 3}), "block_shape 2 2 0");
  both.axis.reset();
  both.block_size = 2;
  EXPECT_EQ(Layout(both, {4, 6}, {2, 3}), "block_shape 2 2 2");
}

TEST(Blocks, RequestedByDynamicQuantize) {
  const auto shape = [](const Granularity& granularity, const Shape& x) {
    absl::StatusOr<RequestedBlocks> requested = BlocksOfRequest(granularity, x);
    if (requested.ok()) ExpectBlocksOf(x, requested->blocks);
    return requested.ok() ? ShapeString(requested->scale_shape) + " " +
                                LayoutText(MakeLayout(x, requested->blocks))
                          : FieldAndNumbers(requested.status());
  };
  EXPECT_EQ(shape({}, {2, 3}), "[] 6/6*1 = 1");
  EXPECT_EQ(shape({}, {}), "[] 1/1*1 = 1");
  EXPECT_EQ(shape(Axis(-1), {2, 3}), "[3] 2/2*3 3/1*1 = 3");
  EXPECT_EQ(shape(Axis(0, 2), {5, 3}), "[3, 3] 5/2*3 3/1*1 = 9");
  EXPECT_EQ(shape(Axis(0, 1), {5, 3}), "[5, 3] 15/1*1 = 15");
  Granularity block_size;
  block_size.block_size = 32;
  EXPECT_EQ(shape(block_size, {2, 64}), "[2, 2] 128/32*1 = 4") << "along axis 1 when unset";
  EXPECT_EQ(shape(Tiles({-1, 2}), {2, 3}), "[1, 2] 2/2*2 3/2*1 = 2");
  EXPECT_EQ(shape(Tiles({-1, 2}), {0, 3}), "[1, 2] = 2");
  EXPECT_EQ(shape(Axis(0), {0, 3}), "[0] = 0");
  EXPECT_EQ(shape(Axis(0), {}), "axis 0");
  EXPECT_EQ(shape(block_size, {7}).substr(0, 4), "axis");
  EXPECT_EQ(shape(Axis(2), {2, 3}).substr(0, 4), "axis");
}

// The scale of each element according to the merged layout.
std::vector<int64_t> LayoutIndexes(const BlockLayout& layout) {
  std::vector<int64_t> indexes = {0};
  for (const BlockLayout::Dimension& d : layout.dimensions) {
    std::vector<int64_t> inner;
    for (int64_t base : indexes) {
      for (int64_t i = 0; i < d.length; ++i) inner.push_back(base + i / d.block * d.scale_stride);
    }
    indexes = std::move(inner);
  }
  return indexes;
}

TEST(Blocks, MergingKeepsTheScaleOfEveryElement) {
  const uint32_t seed = std::random_device()();
  RecordProperty("seed", std::to_string(seed));
  std::mt19937 random(seed);
  const auto up_to = [&](int n) { return std::uniform_int_distribution<int64_t>(1, n)(random); };
  for (int round = 0; round < 20000; ++round) {
    PlanBase plan;
    Granularity granularity;
    const int64_t rank = up_to(5);
    plan.elements = 1;
    for (int64_t i = 0; i < rank; ++i) {
      plan.shape.push_back(up_to(6));
      plan.elements *= plan.shape.back();
      const int64_t block = up_to(8);
      granularity.block_shape.push_back(block == 8 ? -1 : block);
    }
    const RequestedBlocks requested = BlocksOfRequest(granularity, plan.shape).value();
    plan.block_shape = requested.blocks.lengths;
    plan.layout = MakeLayout(plan.shape, requested.blocks);
    ASSERT_EQ(LayoutIndexes(plan.layout), oracle::ScaleIndexes(plan))
        << "x " << ShapeString(plan.shape) << " blocks " << ShapeString(granularity.block_shape)
        << " layout " << LayoutText(plan.layout) << ", seed " << seed;
    ASSERT_EQ(plan.layout.dimensions.back().scale_stride, 1);
    for (size_t i = 0; i < plan.layout.dimensions.size(); ++i) {
      const BlockLayout::Dimension& d = plan.layout.dimensions[i];
      ASSERT_TRUE(d.length > 1 || plan.elements == 1);
      ASSERT_LE(d.block, d.length);
      ASSERT_TRUE(i == 0 || d.block < d.length) << "would have been merged";
    }
  }
}

}  // namespace
}  // namespace quantd
