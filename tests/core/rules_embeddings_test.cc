// The recipes' rules against values computed by hand or observed in the packages that define them.
#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "rules/embeddings.h"

namespace quantd::rules {
namespace rules_embeddings_test {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<int> Unit(const std::vector<float>& x) {
  std::vector<int> codes;
  for (float v : x) codes.push_back(static_cast<int8_t>(UnitCode(v).code));
  return codes;
}
std::vector<int> Ranges(const std::vector<float>& x, float low, float high) {
  std::vector<int> codes;
  for (float v : x) codes.push_back(RangeCode(v, low, RangeStep(low, high)).code);
  return codes;
}
double LengthOf(const std::vector<float>& x) {
  Squares squares;
  for (size_t i = 0; i < x.size(); ++i) squares.Add(x[i], i);
  return squares.Length();
}
std::vector<int> Direction(const std::vector<float>& x) {
  const double length = LengthOf(x);
  std::vector<int> codes;
  for (float v : x) codes.push_back(static_cast<int8_t>(DirectionCode(v, length).code));
  return codes;
}
std::vector<int> Bits(const std::vector<float>& x, bool lsb_first, bool greater_or_equal) {
  std::vector<int> bytes((x.size() + 7) / 8);
  for (size_t i = 0; i < x.size(); ++i) {
    if (Bit(x[i], greater_or_equal)) bytes[i / 8] |= BitOf(i, lsb_first);
  }
  return bytes;
}

TEST(EmbeddingRules, KnownAnswers) {
  const std::vector<float> x = {-1, 1, 0, -2, 2};
  EXPECT_EQ(Unit(x), (std::vector<int>{-128, 126, 0, -128, 127}));
  EXPECT_EQ(Ranges(x, -1, 1), (std::vector<int>{0, 254, 127, 0, 255}));
  EXPECT_EQ(Direction({3, -4, 0, 0}), (std::vector<int>{76, -101, 0, 0}));
  EXPECT_EQ(Direction(std::vector<float>(5, -1e-30f)), std::vector<int>(5, -56));
  EXPECT_EQ(Bits({1, 1, 1, 1, 1, 1, 1, 1, -1}, false, false), (std::vector<int>{0xFF, 0x00}));
  const std::vector<float> bits = {1, 0, -1, 2, -0.0f};
  EXPECT_EQ(Bits(bits, false, false), std::vector<int>{0x90});
  EXPECT_EQ(Bits(bits, true, false), std::vector<int>{0x09});
  EXPECT_EQ(Bits(bits, false, true), std::vector<int>{0xD8});
}

TEST(EmbeddingRules, StepsOfNoWidthAre1) {
  EXPECT_EQ(RangeStep(3, 3), 1);
  EXPECT_EQ(RangeStep(0, 0x1p-149f), 1);  // underflows
  EXPECT_EQ(RangeStep(0, 0x1p-141f), 0x1p-149f);
  EXPECT_EQ(Ranges({2.5f, 3, 3.5f, 4, 300}, 3, 3), (std::vector<int>{0, 0, 0, 1, 255}));
}

TEST(EmbeddingRules, NanAndInfinity) {
  EXPECT_EQ(Ranges({kNan, kInfinity, -kInfinity}, -1, 1), (std::vector<int>{0, 255, 0}));
  EXPECT_EQ(Unit({kNan, kInfinity, -kInfinity}), (std::vector<int>{127, 127, -128}));
  EXPECT_EQ(Direction({1, kNan}), (std::vector<int>{0, 0}));
  EXPECT_EQ(Direction({1, -kInfinity}), (std::vector<int>{0, 0}));
  EXPECT_EQ(Direction({0, -0.0f}), (std::vector<int>{0, 0}));
  EXPECT_EQ(Bits({kNan, kInfinity, -kInfinity, -kNan}, false, true), std::vector<int>{0x40});
}

TEST(EmbeddingRules, Saturation) {
  EXPECT_FALSE(RangeCode(1, -1, RangeStep(-1, 1)).saturated);
  EXPECT_TRUE(RangeCode(-1.001f, -1, RangeStep(-1, 1)).saturated);
  EXPECT_TRUE(RangeCode(1.1f, -1, RangeStep(-1, 1)).saturated);
  EXPECT_TRUE(RangeCode(kInfinity, -1, RangeStep(-1, 1)).saturated);
  EXPECT_FALSE(RangeCode(kNan, -1, RangeStep(-1, 1)).saturated);
  EXPECT_FALSE(UnitCode(-1).saturated);
  EXPECT_TRUE(UnitCode(-1.001f).saturated);
  EXPECT_TRUE(UnitCode(1.01f).saturated);
  EXPECT_FALSE(UnitCode(kNan).saturated);
}

// The order of the sixteen sums: adding in another order gives another length.
TEST(EmbeddingRules, LengthAddsInItsOwnOrder) {
  EXPECT_EQ(LengthOf({}), 0);
  EXPECT_EQ(LengthOf({3, -4}), 5);
  EXPECT_EQ(LengthOf({0x1p-149f}), 0x1p-149);
  EXPECT_EQ(LengthOf({3e38f, kNan}) == LengthOf({3e38f, kNan}), false);
  // 2^53 and 1 and 1: 2^53 + (1 + 1) is exact, (2^53 + 1) + 1 is 2^53.
  std::vector<float> x(32);
  x[0] = 0x1p27f;                  // squared 2^54: an ulp is 4
  x[16] = 1;                       // added to the same sum: lost
  x[1] = x[5] = x[9] = x[13] = 1;  // together 4
  Squares squares;
  for (size_t i = 0; i < x.size(); ++i) squares.Add(x[i], i);
  EXPECT_EQ(squares.sums[0], 0x1p54);
  EXPECT_EQ(squares.Length(), std::sqrt(0x1p54 + 4));
}

TEST(EmbeddingRules, WhatAVectorCanBeDividedBy) {
  EXPECT_TRUE(IsLength(0x1p-149));
  EXPECT_TRUE(IsLength(0.5));
  EXPECT_TRUE(IsLength(std::numeric_limits<double>::max()));
  for (const double none : {0.0, static_cast<double>(kInfinity), static_cast<double>(kNan)}) {
    EXPECT_FALSE(IsLength(none));
    EXPECT_EQ(DirectionCode(1, none).code, 0);
    EXPECT_FALSE(DirectionCode(1, none).saturated);
    EXPECT_EQ(DequantizeDirection(3, none), 0);
  }
  EXPECT_EQ(DirectionCode(kNan, 5).code, 0);
  EXPECT_EQ(Normalized(3, 4), 0.75f);
}

TEST(EmbeddingRules, Inverses) {
  const float step = RangeStep(-1, 1);
  EXPECT_EQ(DequantizeRange(0, 0, -1, step), -1);
  EXPECT_EQ(DequantizeRange(0x80, kSignFlip, -1, step), -1);
  EXPECT_EQ(DequantizeRange(255, 0, -1, step), 255 * static_cast<double>(step) - 1);
  EXPECT_EQ(DequantizeUnit(0x80), -1);
  EXPECT_EQ(DequantizeUnit(0), 128 * kUnitStep - 1);
  EXPECT_EQ(DequantizeDirection(76, 5), 76 * 5.0 / 127);
  EXPECT_EQ(DequantizeDirection(0, kNan), 0);
}

}  // namespace rules_embeddings_test
}  // namespace quantd::rules
