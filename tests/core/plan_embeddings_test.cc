// PlanQuantizeEmbeddings: shapes, and every error with its field and numbers.
#include <limits>

#include "gtest/gtest.h"
#include "quantd/quantize_embeddings.h"
#include "tensors.h"

namespace quantd {
namespace plan_embeddings_test {

using Recipe = EmbeddingRecipe;

const Tensor kX = Floats({2, 9}, std::vector<float>(18, 0.5f));

Tensor Ranges(const std::vector<float>& low, const std::vector<float>& high) {
  std::vector<float> both = low;
  both.insert(both.end(), high.begin(), high.end());
  return Floats({2, static_cast<int64_t>(low.size())}, both);
}
const Tensor kRanges = Ranges(std::vector<float>(9, -1), std::vector<float>(9, 1));

std::string Error(const QuantizeEmbeddingsParameters& parameters) {
  return FieldAndNumbers(PlanQuantizeEmbeddings(parameters).status());
}
QuantizeEmbeddingsPlan Plan(const QuantizeEmbeddingsParameters& parameters) {
  return PlanQuantizeEmbeddings(parameters).value();
}

TEST(PlanEmbeddings, TypesAndShapes) {
  QuantizeEmbeddingsPlan plan = Plan({.x = kX, .recipe = Recipe::kRanges, .ranges = kRanges});
  EXPECT_EQ(plan.output_type, DataType::kUint8);
  EXPECT_EQ(plan.output_shape, (Shape{2, 9}));
  EXPECT_EQ(plan.output_bytes, 18u);
  EXPECT_EQ(plan.rows, 2);
  EXPECT_EQ(plan.steps.size(), 9u);
  EXPECT_EQ(plan.factors.size(), 9u);
  EXPECT_EQ(plan.factors[8], 65536 / plan.steps[8]);  // others are right, and slow
  plan = Plan({.x = kX, .recipe = Recipe::kUnit, .dimensions = 4});
  EXPECT_EQ(plan.output_type, DataType::kInt8);
  EXPECT_EQ(plan.output_shape, (Shape{2, 4}));
  EXPECT_EQ(plan.output_elements, 8);
  plan = Plan({.x = kX, .recipe = Recipe::kBits});
  EXPECT_EQ(plan.output_type, DataType::kUint8);
  EXPECT_EQ(plan.output_shape, (Shape{2, 2}));
  plan = Plan({.x = Zeros(DataType::kFloat16, {8}),
               .recipe = Recipe::kBits,
               .output_type = DataType::kInt8});
  EXPECT_EQ(plan.output_shape, (Shape{1}));
  EXPECT_EQ(plan.rows, 1);
  EXPECT_EQ(plan.input_type, DataType::kFloat16);
  EXPECT_EQ(plan.input_bytes, 16u);
}

// If a step has no factor, the kernel divides by it.
TEST(PlanEmbeddings, FactorsWhereTheyAreExact) {
  const Tensor x = Floats({2}, {0, 0});
  const auto has_factors = [&](float high) {
    return !Plan({.x = x, .recipe = Recipe::kRanges, .ranges = Ranges({0, 0}, {1, high})})
                .factors.empty();
  };
  EXPECT_TRUE(has_factors(1));
  EXPECT_TRUE(has_factors(0));          // step 1
  EXPECT_TRUE(has_factors(0x1p-149f));  // underflows: step 1
  EXPECT_FALSE(has_factors(0x1p-140f));
  EXPECT_FALSE(has_factors(0x1p-95f));
  EXPECT_FALSE(has_factors(3e38f));
}

TEST(PlanEmbeddings, WhatIsWrongWithX) {
  EXPECT_EQ(Error({.x = Zeros(DataType::kInt32, {2}), .recipe = Recipe::kUnit}), "x");
  EXPECT_EQ(Error({.x = Floats({}, {1}), .recipe = Recipe::kUnit}), "x 0 1");
  QuantizeEmbeddingsParameters parameters{.x = kX, .recipe = Recipe::kUnit};
  parameters.x.shape = {3, 9};
  EXPECT_EQ(Error(parameters), "x 72 3 9 108");
  EXPECT_EQ(Error({.x = kX}), "recipe");
}

TEST(PlanEmbeddings, WhatIsWrongWithDimensionsAndTypes) {
  EXPECT_EQ(Error({.x = kX, .recipe = Recipe::kUnit, .dimensions = -1}), "dimensions -1 0");
  EXPECT_EQ(Error({.x = kX, .recipe = Recipe::kUnit, .dimensions = 10}), "dimensions 10 9");
  EXPECT_EQ(Error({.x = kX, .recipe = Recipe::kUnit, .output_type = DataType::kUint8}),
            "output_type");
  EXPECT_EQ(Error({.x = kX, .recipe = Recipe::kDirection, .output_type = DataType::kUint8}),
            "output_type");
  EXPECT_EQ(Error({.x = kX, .recipe = Recipe::kBits, .output_type = DataType::kInt4}),
            "output_type");
}

TEST(PlanEmbeddings, WhatIsWrongWithSwitches) {
  EXPECT_EQ(Error({.x = kX, .recipe = Recipe::kUnit, .bit_order = BitOrder::kMsbFirst}),
            "bit_order");
  EXPECT_EQ(Error({.x = kX, .recipe = Recipe::kUnit, .bit_threshold = BitThreshold::kGreater}),
            "bit_threshold");
  EXPECT_EQ(Error({.x = kX, .recipe = Recipe::kUnit, .signed_bits = SignedBits::kOffset}),
            "signed_bits");
  EXPECT_EQ(Error({.x = kX, .recipe = Recipe::kBits, .signed_bits = SignedBits::kOffset}),
            "signed_bits");
  EXPECT_EQ(Error({.x = kX, .recipe = Recipe::kBits, .report_error = true}), "report_error");
}

TEST(PlanEmbeddings, WhatIsWrongWithRanges) {
  const auto error = [](const Tensor& ranges, int64_t dimensions = 2) {
    return Error({.x = kX, .recipe = Recipe::kRanges, .ranges = ranges, .dimensions = dimensions});
  };
  EXPECT_EQ(Error({.x = kX, .recipe = Recipe::kRanges}), "ranges 2 9");
  EXPECT_EQ(Error({.x = kX, .recipe = Recipe::kUnit, .ranges = kRanges}), "ranges");
  EXPECT_EQ(error(Zeros(DataType::kFloat16, {2, 2})), "ranges");
  EXPECT_EQ(error(kRanges), "ranges 2 9 2 2 2");
  EXPECT_EQ(error(Zeros(DataType::kFloat, {4})), "ranges 4 2 2 2");
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(error(Ranges({0, kNan}, {1, 1})), "ranges 0 1 nan");
  EXPECT_EQ(error(Ranges({0, 0}, {kInfinity, 1})), "ranges 1 0 inf");
  EXPECT_EQ(error(Ranges({0, 2}, {1, 1})), "ranges 0 1 2 1 1 1");
  EXPECT_EQ(error(Ranges({0, -3e38f}, {1, 3e38f})), "ranges 0 1 -3e+38 1 1 3e+38");
}

}  // namespace plan_embeddings_test
}  // namespace quantd
