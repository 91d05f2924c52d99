// The scale and zero point of a block from its range.
#include <cmath>

#include "gtest/gtest.h"
#include "oracle.h"
#include "quantd/dynamic_quantize.h"
#include "rules/elements.h"
#include "rules/scale_rules.h"
#include "tensors.h"

namespace quantd::rules {
namespace rules_scale_rules_test {

// The rule that PlanDynamicQuantize chooses.
BlockRule Rule(DataType output, DataType scale = DataType::kFloat,
               Symmetry symmetry = Symmetry::kDefault) {
  DynamicQuantizeParameters parameters;
  parameters.x.data_type = DataType::kFloat;
  parameters.x.shape = {0};
  parameters.output_type = output;
  parameters.scale_type = scale;
  parameters.symmetry = symmetry;
  return oracle::BlockRuleOf(PlanDynamicQuantize(parameters).value());
}

BlockScale Make(const BlockRule& rule, float minimum, float maximum) {
  return ScaleMaker(rule).Make({minimum, maximum});
}

TEST(ScaleRules, DynamicQuantizeLinear) {
  const BlockScale scale = Make(Rule(DataType::kUint8), -3, 2);
  EXPECT_EQ(scale.scale, 5.0f / 255.0f);
  EXPECT_EQ(scale.code, std::bit_cast<uint32_t>(5.0f / 255.0f));
  EXPECT_EQ(scale.zero_point, 153);
  EXPECT_EQ(Make(Rule(DataType::kUint8), 0, 10).zero_point, 0);
  EXPECT_EQ(Make(Rule(DataType::kUint8), -10, 0).zero_point, 255);
  // 2 / 255 rounds up in FLOAT, so that 1 / scale is a little less than the tie 127.5.
  EXPECT_EQ(Make(Rule(DataType::kUint8), -1, 1).zero_point, 127);
}

TEST(ScaleRules, OtherIntegers) {
  const BlockScale int8 = Make(Rule(DataType::kInt8), -3, 2);
  EXPECT_EQ(int8.scale, 5.0f / 254.0f);
  EXPECT_EQ(int8.zero_point, 25);  // -127 + 152.4
  EXPECT_EQ(Make(Rule(DataType::kInt8), 0, 2).zero_point, -127);
  EXPECT_EQ(Make(Rule(DataType::kInt16), -3, 2).scale, 5.0f / 65535.0f);
  EXPECT_EQ(Make(Rule(DataType::kUint4), -3, 12).scale, 1);
  EXPECT_EQ(Make(Rule(DataType::kUint4), -3, 12).zero_point, 3);
  EXPECT_EQ(Make(Rule(DataType::kInt4), -3, 12).zero_point, -5);
  EXPECT_EQ(Make(Rule(DataType::kInt2), -1, 2).zero_point, -1);
}

TEST(ScaleRules, Symmetric) {
  const auto symmetric = [](DataType type) {
    return Rule(type, DataType::kFloat, Symmetry::kSymmetric);
  };
  EXPECT_EQ(Make(symmetric(DataType::kInt8), -3, 2).scale, 3.0f / 127.0f);
  EXPECT_EQ(Make(symmetric(DataType::kUint8), -3, 2).scale, 3.0f / 255.0f);
  EXPECT_EQ(Make(symmetric(DataType::kInt4), -3, 2).scale, 3.0f / 7.0f);
  EXPECT_EQ(Make(symmetric(DataType::kInt8), -3, 2).zero_point, 0);
  EXPECT_EQ(Make(Rule(DataType::kFloat8E4M3Fn), -3, 2).scale, 3.0f / 448.0f);
  EXPECT_EQ(Make(Rule(DataType::kFloat8E4M3Fnuz), -3, 2).scale, 3.0f / 240.0f);
  EXPECT_EQ(Make(Rule(DataType::kFloat8E5M2), -3, 2).scale, 3.0f / 57344.0f);
  EXPECT_EQ(Make(Rule(DataType::kFloat4E2M1), -3, 2).scale, 0.5f);
  EXPECT_EQ(Make(Rule(DataType::kFloat6E2M3), -3, 2).scale, 0.4f);
  EXPECT_EQ(Make(Rule(DataType::kFloat6E3M2), -3, 7).scale, 0.25f);
}

TEST(ScaleRules, NothingButZeros) {
  for (DataType output : {DataType::kUint8, DataType::kInt8, DataType::kFloat8E5M2}) {
    const BlockScale scale = Make(Rule(output), 0, 0);
    EXPECT_EQ(scale.scale, 1);
    EXPECT_EQ(scale.zero_point, 0);
    EXPECT_EQ(scale.fault, ScaleFault::kNone);
  }
  EXPECT_EQ(Make(Rule(DataType::kUint8, DataType::kFloat16), 0, 0).code, 0x3C00u);
  EXPECT_EQ(Make(Rule(DataType::kUint8, DataType::kBfloat16), 0, 0).code, 0x3F80u);
  EXPECT_EQ(Make(Rule(DataType::kFloat4E2M1, DataType::kFloat8E8M0), 0, 0).code, 0x7Fu);
  EXPECT_EQ(Make(Rule(DataType::kFloat4E2M1, DataType::kFloat8E4M3Fn), 0, 0).code, 0x38u);
}

TEST(ScaleRules, TheScaleIsRoundedBeforeItIsUsed) {
  const BlockScale half = Make(Rule(DataType::kUint8, DataType::kFloat16), -3, 2);
  const float rounded = DecodeFloat16(EncodeFloat16(5.0f / 255.0f));
  EXPECT_EQ(half.scale, rounded);
  EXPECT_EQ(half.code, EncodeFloat16(5.0f / 255.0f));
  EXPECT_EQ(half.zero_point, static_cast<int32_t>(std::nearbyint(3 / rounded)));
  const BlockScale float8 = Make(Rule(DataType::kInt8, DataType::kFloat8E4M3Fn), -254, 0);
  EXPECT_EQ(float8.scale, 1);
  EXPECT_EQ(float8.code, 0x38u);
}

TEST(ScaleRules, UnderflowAndOverflow) {
  EXPECT_EQ(Make(Rule(DataType::kUint8), 0, 1e-44f).fault, ScaleFault::kUnderflow);
  EXPECT_EQ(Make(Rule(DataType::kUint8), 0, 1e-40f).fault, ScaleFault::kNone) << "a denormal";
  EXPECT_EQ(Make(Rule(DataType::kUint8), -3e38f, 3e38f).fault, ScaleFault::kOverflow);
  EXPECT_EQ(Make(Rule(DataType::kUint8, DataType::kFloat16), 0, 1e-6f).fault,
            ScaleFault::kUnderflow);
  EXPECT_EQ(Make(Rule(DataType::kUint8, DataType::kFloat16), 0, 2e7f).fault, ScaleFault::kOverflow);
  EXPECT_EQ(Make(Rule(DataType::kInt8, DataType::kFloat8E4M3Fn), 0, 200000).fault,
            ScaleFault::kOverflow);
  const BlockRule rule = Rule(DataType::kUint8, DataType::kFloat16);
  EXPECT_EQ(ErrorText(ScaleMaker(rule).Error(7, {-1, 2e7f}, ScaleFault::kOverflow)),
            "x: x has values from -1 to 2e+07, their y_scale[7] overflows in FLOAT16");
}

TEST(ScaleRules, Microscaling) {
  const auto code = [](DataType output, float largest) {
    return static_cast<int>(Make(Rule(output, DataType::kFloat8E8M0), -largest, 0).code) - 127;
  };
  EXPECT_EQ(code(DataType::kFloat6E2M3, 9), 1);
  EXPECT_EQ(code(DataType::kFloat6E3M2, 9), -1);
  EXPECT_EQ(code(DataType::kFloat4E2M1, 5), 0);
  EXPECT_EQ(code(DataType::kFloat4E2M1, 8), 1);
  EXPECT_EQ(code(DataType::kFloat4E2M1, std::nextafter(8.0f, 0.0f)), 0);
  EXPECT_EQ(code(DataType::kFloat8E4M3Fn, 1), -8);
  EXPECT_EQ(code(DataType::kFloat8E5M2, 1), -15);
  EXPECT_EQ(code(DataType::kInt8, 1), -6);
  EXPECT_EQ(code(DataType::kInt8, 3e38f), 121);
  EXPECT_EQ(code(DataType::kFloat8E4M3Fn, 0x1p-119f), -127);
  EXPECT_EQ(code(DataType::kFloat8E4M3Fn, 0x1p-140f), -127) << "code 00";
  const BlockScale smallest = Make(Rule(DataType::kInt8, DataType::kFloat8E8M0), 0, 1e-45f);
  EXPECT_EQ(smallest.scale, 0x1p-127f);
  EXPECT_EQ(smallest.fault, ScaleFault::kNone);
}

TEST(ScaleRules, Nvfp4) {
  const BlockRule rule = Rule(DataType::kFloat4E2M1, DataType::kFloat8E4M3Fn);
  ScaleMaker maker(rule);
  EXPECT_EQ(maker.SetTensorScale({-1344, 5}), ScaleFault::kNone);
  EXPECT_EQ(maker.tensor_scale(), 0.5f);
  const BlockScale largest = maker.Make({-1344, 0});
  EXPECT_EQ(largest.code, 0x7Eu);
  EXPECT_EQ(largest.scale, 224);
  const BlockScale one = maker.Make({0, 3});
  EXPECT_EQ(one.code, 0x38u);
  EXPECT_EQ(one.scale, 0.5f);
  const BlockScale smallest = maker.Make({0, 1e-6f});
  EXPECT_EQ(smallest.code, 1u) << "at least 2^-9";
  EXPECT_EQ(smallest.scale, 0x1p-10f);
  EXPECT_EQ(maker.Make({0, 0}).code, 0x38u);

  ScaleMaker zeros(rule);
  EXPECT_EQ(zeros.SetTensorScale({0, 0}), ScaleFault::kNone);
  EXPECT_EQ(zeros.tensor_scale(), 1);
  ScaleMaker tiny(rule);
  EXPECT_EQ(tiny.SetTensorScale({0, 1e-42f}), ScaleFault::kUnderflow);
  EXPECT_EQ(ErrorText(tiny.Error(-1, {0, 1e-42f}, ScaleFault::kUnderflow)).substr(0, 17),
            "x: x has values f");
}

}  // namespace rules_scale_rules_test
}  // namespace quantd::rules
