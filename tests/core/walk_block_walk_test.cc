// Which scale belongs to which element, against the definition of a block shape.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "random_layout.h"
#include "walk/block_walk.h"
#include "walk/part.h"
#include "walk/scale_cursor.h"

namespace quantd {
namespace {

TEST(BlockWalk, FindsTheScaleOfEveryElement) {
  const uint32_t seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 400; ++round) {
    const RandomLayout made = MakeLayout(random);
    BlockWalk walk(made.layout);
    for (int seeks = 0; seeks < 3; ++seeks) {
      int64_t at = seeks == 0 ? 0 : static_cast<int64_t>(random() % made.elements);
      walk.Seek(at);
      while (at < made.elements) {
        const int64_t most = 1 + static_cast<int64_t>(random() % 300);
        const Segment segment = walk.Next(std::min(most, made.elements - at));
        ASSERT_GE(segment.elements, 1);
        ASSERT_LT(segment.phase, walk.block());
        for (int64_t i = 0; i < segment.elements; ++i) {
          ASSERT_EQ(segment.scale + (segment.phase + i) / walk.block(),
                    ScaleOf(made.layout, at + i))
              << "element " << at + i;
        }
        at += segment.elements;
      }
    }
  }
}

// A part of a tensor counts its scales from its own first one.
TEST(BlockWalk, OfAPartBeginsAtItsFirstScale) {
  const uint32_t seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 400; ++round) {
    const RandomLayout made = MakeLayout(random);
    const int64_t alone = ElementsWithoutSharedScales(made.layout);
    for (int64_t begin = 0; begin < made.elements; begin += alone) {
      const int64_t first = ScaleOf(made.layout, begin);
      ASSERT_TRUE(begin == 0 || first > ScaleOf(made.layout, begin - 1)) << "a scale is shared";
      BlockWalk walk(made.layout, first);
      ASSERT_EQ(walk.Next(1).scale, -first) << "at the tensor's first element";
      walk.Seek(begin);
      ASSERT_EQ(walk.Next(1).scale, 0);
      begin += alone * static_cast<int64_t>(random() % 50);
    }
  }
}

TEST(BlockWalk, APartNamesTheScalesOfItsElements) {
  const uint32_t seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 400; ++round) {
    const RandomLayout made = MakeLayout(random);
    const int64_t begin = static_cast<int64_t>(random() % made.elements);
    const int64_t end = begin + 1 + static_cast<int64_t>(random() % (made.elements - begin));
    const Part part = PartOf(made.layout, begin, end);
    ASSERT_LE(part.first_scale + part.scales, static_cast<size_t>(made.layout.scale_count));
    int64_t least = made.layout.scale_count;
    int64_t most = 0;
    for (int64_t i = begin; i < end; ++i) {
      least = std::min(least, ScaleOf(made.layout, i));
      most = std::max(most, ScaleOf(made.layout, i));
    }
    ASSERT_LE(static_cast<int64_t>(part.first_scale), least);
    ASSERT_GT(static_cast<int64_t>(part.first_scale + part.scales), most);
    if (made.layout.dimensions.size() == 1) {
      ASSERT_EQ(static_cast<int64_t>(part.scales), most - least + 1);
    }
  }
}

TEST(BlockWalk, SaysWhatRowsHaveInCommon) {
  // (length, block) of each dimension; strides follow.
  const auto walk = [](const std::vector<std::pair<int64_t, int64_t>>& dimensions) {
    BlockLayout layout;
    layout.scale_count = 1;
    for (size_t i = dimensions.size(); i-- > 0;) {
      const auto [length, block] = dimensions[i];
      layout.dimensions.insert(layout.dimensions.begin(), {length, block, layout.scale_count});
      layout.scale_count *= layout.dimensions[0].blocks();
    }
    return BlockWalk(layout);
  };
  const BlockWalk one_scale = walk({{7, 7}});
  EXPECT_TRUE(one_scale.one_row());
  EXPECT_EQ(one_scale.row(), 7);
  EXPECT_EQ(one_scale.block(), 7);
  const BlockWalk blocks = walk({{7, 2}});
  EXPECT_TRUE(blocks.one_row());
  EXPECT_EQ(blocks.period(), 7);
  EXPECT_FALSE(HasShortRows(blocks));
  const BlockWalk columns = walk({{4, 4}, {7, 1}});
  EXPECT_FALSE(columns.one_row());
  EXPECT_EQ(columns.period(), 7) << "all rows have the same scales";
  EXPECT_TRUE(HasShortRows(columns));
  EXPECT_EQ(walk({{4, 2}, {7, 1}}).period(), 0);
  EXPECT_EQ(walk({{4, 4}, {4, 2}, {7, 1}}).period(), 0);
  EXPECT_TRUE(HasShortRows(walk({{4, 2}, {kShortRow - 1, 1}})));
  EXPECT_FALSE(HasShortRows(walk({{4, 2}, {kShortRow, 1}})));
}

TEST(ScaleCursor, GivesKernelsTheScaleOfEveryElement) {
  const uint32_t seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 300; ++round) {
    const RandomLayout made = MakeLayout(random);
    std::vector<float> one(made.layout.scale_count);
    std::vector<int32_t> other(made.layout.scale_count);
    for (size_t i = 0; i < one.size(); ++i) {
      one[i] = static_cast<float>(i);
      other[i] = -static_cast<int32_t>(i);
    }
    const BlockWalk walk(made.layout);
    const ScaleMode mode = ScaleModeOf(walk);
    using Scales = ScaleCursor<float, float, int32_t>;
    Scales scales(walk, {nullptr, one.data(), other.data()});
    const int64_t begin = round % 2 == 0 ? 0 : static_cast<int64_t>(random() % made.elements);
    scales.Seek(begin, made.elements);
    for (int64_t at = begin; at < made.elements;) {
      const int64_t wanted = 1 + static_cast<int64_t>(random() % 3000);
      const int64_t window = scales.Most(std::min(wanted, made.elements - at));
      int64_t seen = 0;
      scales.ForEach(window, [&](const Scales::Piece& piece) {
        EXPECT_EQ(piece.offset, seen);
        ASSERT_LT(piece.first, piece.run);
        for (size_t i = 0; i < piece.size; ++i) {
          const size_t entry = mode == ScaleMode::kRuns ? (piece.first + i) / piece.run : i;
          const int64_t expected = ScaleOf(made.layout, at + seen + static_cast<int64_t>(i));
          ASSERT_EQ(piece.column<1>()[entry], static_cast<float>(expected));
          ASSERT_EQ(piece.column<2>()[entry], -expected);
        }
        EXPECT_EQ(piece.column<0>(), nullptr);
        seen += static_cast<int64_t>(piece.size);
      });
      ASSERT_EQ(seen, window);
      at += window;
    }
  }
}

}  // namespace
}  // namespace quantd
