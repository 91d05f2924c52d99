// The oracle itself, against the examples in the documentation of ONNX's operators and sums
// computed by hand.
#include "oracle.h"

#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensors.h"

namespace quantd::oracle {
namespace {

using ::testing::ElementsAre;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<uint8_t> RunQuantize(const QuantizeParameters& parameters, const Tensor& x,
                                 QuantizationError* error = nullptr) {
  const QuantizePlan plan = PlanQuantize(parameters).value();
  std::vector<uint8_t> y(plan.output_bytes);
  Quantize(plan, x.bytes(), absl::MakeSpan(y), error);
  return y;
}

struct DynamicAnswer {
  std::vector<uint8_t> y, scale, zero_point, tensor_scale;
  QuantizationError error;
};

absl::StatusOr<DynamicAnswer> RunDynamic(const DynamicQuantizeParameters& parameters,
                                         const Tensor& x) {
  const DynamicQuantizePlan plan = PlanDynamicQuantize(parameters).value();
  DynamicAnswer answer;
  answer.y.resize(plan.output_bytes);
  answer.scale.resize(plan.scale_bytes);
  answer.zero_point.resize(plan.zero_point_bytes);
  answer.tensor_scale.resize(plan.has_tensor_scale ? 4 : 0);
  const DynamicQuantizeOutput output = {absl::MakeSpan(answer.y), absl::MakeSpan(answer.scale),
                                        absl::MakeSpan(answer.zero_point),
                                        absl::MakeSpan(answer.tensor_scale)};
  const absl::Status status = DynamicQuantize(plan, x.bytes(), output, &answer.error);
  if (!status.ok()) return status;
  return answer;
}

float FloatAt(const std::vector<uint8_t>& bytes, int64_t index) {
  return std::bit_cast<float>(LoadCode(DataType::kFloat, bytes.data(), index));
}

TEST(Oracle, OnnxQuantizeLinear) {
  const Tensor x = Floats({6}, {0, 2, 3, 1000, -254, -1000});
  const Tensor scale = Floats({}, {2});
  const Tensor zero_point = Integers(DataType::kUint8, {}, {128});
  EXPECT_THAT(RunQuantize({.x = x, .scale = scale, .zero_point = zero_point}, x),
              ElementsAre(128, 129, 130, 255, 1, 0));
}

TEST(Oracle, OnnxQuantizeLinearAxis) {
  const Tensor x = Floats({1, 3, 3, 2}, {-162, 10, -100, 232, -20, -50, -76, 0, 0, 252, 32, -44,
                                         245, -485, -960, -270, -375, -470});
  const Tensor scale = Floats({3}, {2, 4, 5});
  const Tensor zero_point = Integers(DataType::kUint8, {3}, {84, 24, 196});
  EXPECT_THAT(
      RunQuantize({.x = x, .scale = scale, .zero_point = zero_point}, x),
      ElementsAre(3, 89, 34, 200, 74, 59, 5, 24, 24, 87, 32, 13, 245, 99, 4, 142, 121, 102));
}

TEST(Oracle, BlocksWithARaggedEnd) {
  const Tensor x = Floats({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor scale = Floats({2, 2}, {1, 2, 3, 4});
  QuantizeParameters parameters{.x = x, .scale = scale};
  parameters.granularity.axis = 1;
  parameters.granularity.block_size = 2;
  EXPECT_THAT(RunQuantize(parameters, x), ElementsAre(1, 2, 2, 1, 2, 2));
  parameters.granularity = {};
  parameters.granularity.block_shape = {1, 2};
  EXPECT_THAT(RunQuantize(parameters, x), ElementsAre(1, 2, 2, 1, 2, 2));
}

TEST(Oracle, ErrorReport) {
  const Tensor x = Floats({5}, {1, 2.5f, 300, kNan, -std::numeric_limits<float>::infinity()});
  const Tensor scale = Floats({}, {1});
  QuantizationError error;
  EXPECT_THAT(RunQuantize({.x = x, .scale = scale, .report_error = true}, x, &error),
              ElementsAre(1, 2, 255, 0, 0));
  EXPECT_DOUBLE_EQ(error.mean_squared_error, (0.25 + 45 * 45) / 3);
  EXPECT_DOUBLE_EQ(error.max_absolute_error, 45);
  EXPECT_DOUBLE_EQ(error.sqnr_db, 10 * std::log10((1 + 6.25 + 90000) / (0.25 + 45 * 45)));
  EXPECT_EQ(error.saturated_elements, 2u);
  EXPECT_EQ(error.non_finite_elements, 2u);
}

TEST(Oracle, ErrorReportUsesTheScaleBeforeTheCast) {
  const float exact = 1.0f + 0x1p-20f;
  const Tensor x = Floats({1}, {3 * exact});
  const Tensor scale = Floats({}, {exact});
  QuantizationError error;
  EXPECT_THAT(
      RunQuantize({.x = x, .scale = scale, .precision = DataType::kFloat16, .report_error = true},
                  x, &error),
      ElementsAre(3));
  EXPECT_LT(error.max_absolute_error, 1e-6);
}

TEST(Oracle, ErrorReportTakesInt32Exactly) {
  const Tensor x = Integers(DataType::kInt32, {1}, {16777217});
  const Tensor scale = Floats({}, {16777216});
  QuantizationError error;
  RunQuantize({.x = x, .scale = scale, .report_error = true}, x, &error);
  EXPECT_EQ(error.max_absolute_error, 1);
}

TEST(Oracle, Dequantize) {
  const Tensor x = Integers(DataType::kInt4, {2, 3}, {-8, -1, 0, 1, 6, 7});
  const Tensor scale = Floats({3}, {1, 2, 0.5f});
  const Tensor zero_point = Integers(DataType::kInt4, {3}, {0, 1, -1});
  const DequantizePlan plan =
      PlanDequantize({.x = x, .scale = scale, .zero_point = zero_point}).value();
  std::vector<uint8_t> y(plan.output_bytes);
  Dequantize(plan, x.bytes(), absl::MakeSpan(y));
  EXPECT_THAT(UnpackFloats(DataType::kFloat, 6, y), ElementsAre(-8, -4, 0.5f, 1, 10, 4));
}

TEST(Oracle, DequantizeRoundsOnceToTheOutput) {
  EXPECT_EQ(EncodeOutput(DataType::kFloat, 1.5f), std::bit_cast<uint32_t>(1.5f));
  EXPECT_EQ(EncodeOutput(DataType::kFloat16, 65520), 0x7C00u) << "Inf, never saturated";
  EXPECT_EQ(EncodeOutput(DataType::kBfloat16, 1.00390625f), 0x3F80u) << "a tie goes to even";
}

TEST(Oracle, OnnxDynamicQuantizeLinear) {
  const Tensor x = Floats({6}, {0, 2, -3, -2.5f, 1.34f, 0.5f});
  const DynamicAnswer answer = RunDynamic({.x = x}, x).value();
  EXPECT_EQ(FloatAt(answer.scale, 0), 5.0f / 255.0f);
  EXPECT_THAT(answer.zero_point, ElementsAre(153));
  EXPECT_THAT(answer.y, ElementsAre(153, 255, 0, 26, 221, 179));
}

TEST(Oracle, DynamicInt8IsNeverMinus128) {
  const Tensor x = Floats({4}, {-254, 0, kNan, -std::numeric_limits<float>::infinity()});
  DynamicQuantizeParameters parameters{.x = x, .output_type = DataType::kInt8};
  EXPECT_EQ(ErrorText(RunDynamic(parameters, x).status()),
            "x: x[2] is nan, DynamicQuantize takes finite values unless non_finite is IGNORE");
  parameters.non_finite = NonFinite::kIgnore;
  const DynamicAnswer answer = RunDynamic(parameters, x).value();
  EXPECT_EQ(FloatAt(answer.scale, 0), 1);
  EXPECT_THAT(answer.zero_point, ElementsAre(127));
  EXPECT_THAT(answer.y, ElementsAre(0x81, 127, 0x81, 0x81));
}

TEST(Oracle, DynamicPerAxisWithAZeroRow) {
  const Tensor x = Floats({2, 2}, {0, 0, 1, 255});
  DynamicQuantizeParameters parameters{.x = x};
  parameters.granularity.axis = 0;
  const DynamicAnswer answer = RunDynamic(parameters, x).value();
  EXPECT_THAT(UnpackFloats(DataType::kFloat, 2, answer.scale), ElementsAre(1, 1));
  EXPECT_THAT(answer.y, ElementsAre(0, 0, 1, 255));
}

TEST(Oracle, DynamicOfNothing) {
  const Tensor x = Floats({0, 3}, {});
  DynamicQuantizeParameters parameters{.x = x};
  parameters.granularity.axis = 1;
  const DynamicAnswer answer = RunDynamic(parameters, x).value();
  EXPECT_THAT(UnpackFloats(DataType::kFloat, 3, answer.scale), ElementsAre(1, 1, 1));
  EXPECT_THAT(answer.zero_point, ElementsAre(0, 0, 0));
  EXPECT_TRUE(answer.y.empty());
}

TEST(Oracle, MicroscalingAndNvfp4) {
  const Tensor x = Floats({1, 4}, {5, -1, 0.5f, 0});
  DynamicQuantizeParameters parameters{
      .x = x, .output_type = DataType::kFloat4E2M1, .scale_type = DataType::kFloat8E8M0};
  parameters.granularity.block_size = 2;
  DynamicAnswer answer = RunDynamic(parameters, x).value();
  EXPECT_THAT(answer.scale, ElementsAre(127, 124));  // 2^(2 - 2) and 2^(-1 - 2)
  EXPECT_THAT(answer.y, ElementsAre(0xA6, 0x06));    // 4, -1 and 4, 0
  parameters.scale_type = DataType::kFloat8E4M3Fn;
  answer = RunDynamic(parameters, x).value();
  EXPECT_EQ(FloatAt(answer.tensor_scale, 0), 5.0f / 2688.0f);
  EXPECT_THAT(answer.scale, ElementsAre(0x7E, 0x63));  // 448 and 44 of 44.8
  EXPECT_EQ(answer.error.saturated_elements, 0u);
}

}  // namespace
}  // namespace quantd::oracle
