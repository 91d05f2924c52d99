// Operations on many scales at once, on every target against the scalar one, bit for bit.
#include <array>

#include "kernels_test_util.h"
#include "rules/scale_rules.h"

namespace quantd {
namespace {

uint32_t Bits(float value) { return std::bit_cast<uint32_t>(value); }

TEST(Magnitudes, OfAnyFloatsAnywhere) {
  std::mt19937 random = SeededRandom(20240611);
  std::vector<const KernelTable*> tables = TablesUnderTest();
  tables.push_back(&ScalarKernels());
  for (size_t size = 0; size <= 260; ++size) {
    std::vector<float> x(size);
    for (float& value : x) value = HardScale(random, true);
    // The extreme value, which may be at any place and at either end.
    const float kEnds[] = {0.0f, -0.0f, 0x1p-149f, -kInfinity, 0x1.fffffep127f, std::nanf("1")};
    const float end = kEnds[random() % std::size(kEnds)];
    if (size > 0) x[random() % size] = end;
    uint32_t smallest = Bits(1);
    uint32_t largest = Bits(1);
    for (const float value : x) {
      smallest = std::min(smallest, Bits(std::fabs(value)));
      largest = std::max(largest, Bits(std::fabs(value)));
    }
    for (const KernelTable* table : tables) {
      const Magnitudes found = table->magnitudes(x.data(), size);
      ASSERT_EQ(Bits(found.smallest), smallest) << table->name << " " << size;
      ASSERT_EQ(Bits(found.largest), largest) << table->name << " " << size;
    }
  }
}

TEST(Magnitudes, SayWhatIsWrongWithScales) {
  const auto of = [](float scale) { return Kernels().magnitudes(&scale, 1); };
  for (const float scale : {0.0f, -0.0f, kInfinity, -kInfinity, std::nanf("")}) {
    EXPECT_FALSE(IsDivisor(of(scale))) << scale;
    EXPECT_FALSE(HasReciprocal(of(scale))) << scale;
  }
  for (const float scale : {0x1p-149f, -0x1.fffffep-101f, 0x1.000002p76f, -0x1.fffffep127f}) {
    EXPECT_TRUE(IsDivisor(of(scale))) << scale;
    EXPECT_FALSE(HasReciprocal(of(scale))) << scale;
  }
  for (const float scale : {0x1p-100f, -0x1p-100f, 1.0f, 0x1p76f, -0x1p76f}) {
    EXPECT_TRUE(IsDivisor(of(scale))) << scale;
    EXPECT_TRUE(HasReciprocal(of(scale))) << scale;
  }
}

// The same as the rule for each; also in place.
TEST(RangeScales, AreThoseOfTheRule) {
  std::mt19937 random = SeededRandom(20240612);
  std::vector<const KernelTable*> tables = TablesUnderTest();
  tables.push_back(&ScalarKernels());
  rules::BlockRule rule;
  const std::array<std::pair<int32_t, int32_t>, 4> bounds = {
      {{0, 255}, {-127, 127}, {-32768, 32767}, {-2, 1}}};
  for (size_t size = 0; size <= 130; ++size) {
    std::tie(rule.minimum, rule.maximum) = bounds[size % bounds.size()];
    const rules::ScaleMaker maker(rule);
    std::vector<float> min(size), max(size), want_scale(size), want_point(size);
    for (size_t i = 0; i < size; ++i) {
      const auto end = [&] {
        const float any = std::fabs(HardValue(random, 1));
        return random() % 4 == 0 || !(any < 0x1p120f && any > 0x1p-130f) ? 0.0f : any;
      };
      min[i] = -end();
      max[i] = end();
      const rules::BlockScale made = maker.Make({min[i], max[i]});
      ASSERT_EQ(made.fault, rules::ScaleFault::kNone);
      want_scale[i] = made.scale;
      want_point[i] = static_cast<float>(made.zero_point);
    }
    const float steps = static_cast<float>(rule.maximum - rule.minimum);
    for (const KernelTable* table : tables) {
      std::vector<float> scale(size);
      std::vector<float> point = max;
      table->range_scales(min.data(), max.data(), size, steps, scale.data());
      ASSERT_EQ(scale, want_scale) << table->name;
      table->range_zero_points(min.data(), point.data(), scale.data(), size,
                               static_cast<float>(rule.minimum), static_cast<float>(rule.maximum),
                               point.data());
      ASSERT_EQ(point, want_point) << table->name;
    }
  }
}

}  // namespace
}  // namespace quantd
