// Which scale belongs to which element, against the definition of a block shape.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "walk/block_walk.h"
#include "walk/scale_cursor.h"

namespace quantd {
namespace {

// The scale of an element by plain division and remainder.
int64_t ScaleOf(const BlockLayout& layout, int64_t element) {
  int64_t scale = 0;
  for (size_t i = layout.dimensions.size(); i-- > 0;) {
    const BlockLayout::Dimension& dimension = layout.dimensions[i];
    scale += element % dimension.length / dimension.block * dimension.scale_stride;
    element /= dimension.length;
  }
  return scale;
}

struct RandomLayout {
  BlockLayout layout;
  int64_t elements = 1;
};

RandomLayout MakeLayout(std::mt19937& random) {
  RandomLayout made;
  const size_t rank = 1 + random() % 4;
  made.layout.scale_count = 1;
  std::vector<BlockLayout::Dimension> dimensions(rank);
  for (size_t i = rank; i-- > 0;) {
    const int64_t most = i + 1 == rank && random() % 2 == 0 ? 900 : 12;
    BlockLayout::Dimension& dimension = dimensions[i];
    dimension.length = 1 + static_cast<int64_t>(random() % most);
    dimension.block = 1 + static_cast<int64_t>(random() % dimension.length);
    if (random() % 4 == 0) dimension.block = 1;
    if (random() % 4 == 0) dimension.block = dimension.length;
    dimension.scale_stride = made.layout.scale_count;
    made.layout.scale_count *= dimension.blocks();
    made.elements *= dimension.length;
  }
  made.layout.dimensions.assign(dimensions.begin(), dimensions.end());
  return made;
}

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
