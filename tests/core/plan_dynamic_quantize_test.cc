// PlanDynamicQuantize: which rule, how many scales, and every error with its field and
// numbers.
#include "gtest/gtest.h"
#include "quantd/dynamic_quantize.h"
#include "tensors.h"

namespace quantd {
namespace plan_dynamic_quantize_test {

const Tensor kX = Floats({2, 3}, {1, 2, 3, 4, 5, 6});

std::string Error(const DynamicQuantizeParameters& parameters) {
  return FieldAndNumbers(PlanDynamicQuantize(parameters).status());
}

TEST(PlanDynamicQuantize, RulesAndRanges) {
  struct Row {
    DataType output, scale;
    Symmetry symmetry;
    ScaleRule rule;
    int32_t minimum, maximum;
  };
  const DataType f32 = DataType::kFloat, e8m0 = DataType::kFloat8E8M0,
                 e4m3 = DataType::kFloat8E4M3Fn;
  const Row rows[] = {
      {DataType::kInt8, f32, Symmetry::kDefault, ScaleRule::kRange, -127, 127},
      {DataType::kInt8, e4m3, Symmetry::kAsymmetric, ScaleRule::kRange, -127, 127},
      {DataType::kInt8, f32, Symmetry::kSymmetric, ScaleRule::kSymmetric, -127, 127},
      {DataType::kInt8, e8m0, Symmetry::kDefault, ScaleRule::kPowerOfTwo, -127, 127},
      {DataType::kInt16, f32, Symmetry::kDefault, ScaleRule::kRange, -32768, 32767},
      {DataType::kUint4, f32, Symmetry::kDefault, ScaleRule::kRange, 0, 15},
      {DataType::kInt2, f32, Symmetry::kSymmetric, ScaleRule::kSymmetric, -2, 1},
      {e4m3, f32, Symmetry::kDefault, ScaleRule::kSymmetric, 0, 0},
      {e4m3, f32, Symmetry::kAsymmetric, ScaleRule::kSymmetric, 0, 0},
      {e4m3, e8m0, Symmetry::kDefault, ScaleRule::kPowerOfTwo, 0, 0},
      {e4m3, e4m3, Symmetry::kDefault, ScaleRule::kSymmetric, 0, 0},
      {DataType::kFloat8E5M2, e8m0, Symmetry::kDefault, ScaleRule::kPowerOfTwo, 0, 0},
      {DataType::kFloat6E2M3, e8m0, Symmetry::kDefault, ScaleRule::kPowerOfTwo, 0, 0},
      {DataType::kFloat6E3M2, e4m3, Symmetry::kDefault, ScaleRule::kSymmetric, 0, 0},
      {DataType::kFloat4E2M1, e8m0, Symmetry::kDefault, ScaleRule::kPowerOfTwo, 0, 0},
      {DataType::kFloat4E2M1, e4m3, Symmetry::kDefault, ScaleRule::kTwoLevel, 0, 0},
      {DataType::kFloat4E2M1, DataType::kFloat16, Symmetry::kDefault, ScaleRule::kSymmetric, 0, 0},
  };
  for (const Row& row : rows) {
    const DynamicQuantizePlan plan =
        PlanDynamicQuantize(
            {.x = kX, .output_type = row.output, .scale_type = row.scale, .symmetry = row.symmetry})
            .value();
    const std::string name = std::string(Name(row.output)) + " " + std::string(Name(row.scale));
    EXPECT_EQ(plan.rule, row.rule) << name;
    EXPECT_EQ(plan.minimum, row.minimum) << name;
    EXPECT_EQ(plan.maximum, row.maximum) << name;
    EXPECT_EQ(plan.has_zero_point, row.rule == ScaleRule::kRange) << name;
    EXPECT_EQ(plan.has_tensor_scale, row.rule == ScaleRule::kTwoLevel) << name;
    EXPECT_EQ(plan.scale_bytes, ByteSize(row.scale, 1)) << name;
  }
}

TEST(PlanDynamicQuantize, AnEmptyTensorClaimsNoMoreScalesThanFewBytes) {
  const Tensor empty = Floats({0, 65536}, {});
  DynamicQuantizeParameters parameters{.x = empty};
  parameters.granularity.axis = 1;
  EXPECT_EQ(PlanDynamicQuantize(parameters)->layout.scale_count, 65536);
  parameters.granularity.axis = 0;
  EXPECT_EQ(PlanDynamicQuantize(parameters)->layout.scale_count, 0);
  parameters.x.shape = {0, int64_t{1} << 40};
  EXPECT_EQ(PlanDynamicQuantize(parameters)->layout.scale_count, 0);
  parameters.granularity.axis = 1;
  EXPECT_EQ(Error(parameters), "x 0 1099511627776 1099511627776 65536");
}

TEST(PlanDynamicQuantize, Errors) {
  DynamicQuantizeParameters parameters{.x = kX, .output_type = DataType::kInt32};
  EXPECT_EQ(Error(parameters).substr(0, 11), "output_type");
  parameters.output_type = DataType::kUint8;
  parameters.scale_type = DataType::kInt32;
  EXPECT_EQ(Error(parameters), "scale_type");
  parameters.scale_type = DataType::kFloat8E8M0;
  EXPECT_EQ(Error(parameters), "output_type");
  parameters.scale_type = DataType::kUnspecified;
  parameters.x.shape = {2, 4};
  EXPECT_EQ(Error(parameters), "x 24 2 4 32");
  parameters.x = Zeros(DataType::kUint8, {2});
  EXPECT_EQ(Error(parameters), "x");
  parameters.x = kX;
  parameters.granularity.axis = 2;
  EXPECT_EQ(Error(parameters), "axis 2 2 -2 1");
}

}  // namespace plan_dynamic_quantize_test
}  // namespace quantd
