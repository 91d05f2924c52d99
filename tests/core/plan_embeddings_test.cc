// PlanQuantizeEmbeddings: shapes, and every error with its text.
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
  return ErrorText(PlanQuantizeEmbeddings(parameters).status());
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
  EXPECT_EQ(Error({.x = Zeros(DataType::kInt32, {2}), .recipe = Recipe::kUnit}),
            "x: x is INT32, QuantizeEmbeddings takes FLOAT, FLOAT16, BFLOAT16");
  EXPECT_EQ(Error({.x = Floats({}, {1}), .recipe = Recipe::kUnit}),
            "x: x has 0 dimensions, embeddings have at least 1: their values");
  QuantizeEmbeddingsParameters parameters{.x = kX, .recipe = Recipe::kUnit};
  parameters.x.shape = {3, 9};
  EXPECT_EQ(Error(parameters), "x: x has 72 bytes, FLOAT of shape [3, 9] takes 108");
  EXPECT_EQ(Error({.x = kX}),
            "recipe: recipe is unset, it must be one of RANGES, UNIT, DIRECTION and BITS");
}

TEST(PlanEmbeddings, WhatIsWrongWithDimensionsAndTypes) {
  EXPECT_EQ(Error({.x = kX, .recipe = Recipe::kUnit, .dimensions = -1}),
            "dimensions: dimensions is -1, it is 0 (all) or more");
  EXPECT_EQ(Error({.x = kX, .recipe = Recipe::kUnit, .dimensions = 10}),
            "dimensions: dimensions is 10, the last dimension of x has 9");
  EXPECT_EQ(Error({.x = kX, .recipe = Recipe::kUnit, .output_type = DataType::kUint8}),
            "output_type: output_type is UINT8, UNIT gives INT8");
  EXPECT_EQ(Error({.x = kX, .recipe = Recipe::kDirection, .output_type = DataType::kUint8}),
            "output_type: output_type is UINT8, DIRECTION gives INT8");
  EXPECT_EQ(Error({.x = kX, .recipe = Recipe::kBits, .output_type = DataType::kInt4}),
            "output_type: output_type is INT4, BITS gives UINT8, INT8");
}

TEST(PlanEmbeddings, WhatIsWrongWithSwitches) {
  EXPECT_EQ(Error({.x = kX, .recipe = Recipe::kUnit, .bit_order = BitOrder::kMsbFirst}),
            "bit_order: bit_order is set, recipe is UNIT: it is for BITS");
  EXPECT_EQ(Error({.x = kX, .recipe = Recipe::kUnit, .bit_threshold = BitThreshold::kGreater}),
            "bit_threshold: bit_threshold is set, recipe is UNIT: it is for BITS");
  EXPECT_EQ(Error({.x = kX, .recipe = Recipe::kUnit, .signed_bits = SignedBits::kOffset}),
            "signed_bits: signed_bits is set, recipe is UNIT: it is for BITS");
  EXPECT_EQ(Error({.x = kX, .recipe = Recipe::kBits, .signed_bits = SignedBits::kOffset}),
            "signed_bits: signed_bits is set, the output is UINT8: it is for BITS to INT8");
  EXPECT_EQ(Error({.x = kX, .recipe = Recipe::kBits, .report_error = true}),
            "report_error: report_error is set, recipe is BITS: bits have no inverse to report on");
}

TEST(PlanEmbeddings, WhatIsWrongWithRanges) {
  const auto error = [](const Tensor& ranges, int64_t dimensions = 2) {
    return Error({.x = kX, .recipe = Recipe::kRanges, .ranges = ranges, .dimensions = dimensions});
  };
  EXPECT_EQ(Error({.x = kX, .recipe = Recipe::kRanges}),
            "ranges: ranges are required, recipe is RANGES: FLOAT of shape [2, 9]");
  EXPECT_EQ(Error({.x = kX, .recipe = Recipe::kUnit, .ranges = kRanges}),
            "ranges: ranges are set, recipe is UNIT: they are for RANGES");
  EXPECT_EQ(error(Zeros(DataType::kFloat16, {2, 2})),
            "ranges: ranges is FLOAT16, RANGES takes FLOAT");
  EXPECT_EQ(
      error(kRanges),
      "ranges: ranges have shape [2, 9], must have [2, 2]: 2 values of each embedding are used");
  EXPECT_EQ(error(Zeros(DataType::kFloat, {4})),
            "ranges: ranges have shape [4], must have [2, 2]: 2 values of each embedding are used");
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(error(Ranges({0, kNan}, {1, 1})), "ranges: ranges[0, 1] is nan, ranges are finite");
  EXPECT_EQ(error(Ranges({0, 0}, {kInfinity, 1})),
            "ranges: ranges[1, 0] is inf, ranges are finite");
  EXPECT_EQ(error(Ranges({0, 2}, {1, 1})),
            "ranges: ranges[0, 1] is 2, ranges[1, 1] is 1: the first row has the lowest values");
  EXPECT_EQ(error(Ranges({0, -3e38f}, {1, 3e38f})),
            "ranges: ranges[0, 1] is -3e+38, ranges[1, 1] is 3e+38: their difference overflows");
}

}  // namespace plan_embeddings_test
}  // namespace quantd
