// PlanDequantize: every error with its text, and the scales and zero points that it makes.
#include <bit>
#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "quantd/dequantize.h"
#include "tensors.h"

namespace quantd {
namespace plan_dequantize_test {

const Tensor kX = Zeros(DataType::kUint8, {2, 2});
const Tensor kScale = Floats({}, {0.5f});

DequantizeParameters Parameters() { return {.x = kX, .scale = kScale}; }

std::string Error(const DequantizeParameters& parameters) {
  return ErrorText(PlanDequantize(parameters).status());
}

TEST(PlanDequantize, EveryTypeOfTheTable) {
  for (const DataTypeInfo& info : kDataTypes) {
    const bool is_float = info.kind == DataTypeKind::kFloat;
    const bool input = !is_float && info.type != DataType::kFloat8E8M0;
    const bool scale = is_float || info.type == DataType::kInt32 ||
                       info.type == DataType::kFloat8E8M0 || info.type == DataType::kFloat8E4M3Fn;
    DequantizeParameters parameters = Parameters();
    parameters.x = Zeros(info.type, {2, 2});
    const absl::StatusOr<DequantizePlan> plan = PlanDequantize(parameters);
    EXPECT_EQ(plan.ok(), input) << info.name;
    if (input) {
      EXPECT_EQ(plan->output_type, DataType::kFloat);
      EXPECT_EQ(plan->output_bytes, 16u);
      EXPECT_EQ(plan->input_bytes, ByteSize(info.type, 4));
    }
    parameters = Parameters();
    parameters.output_type = DataType::kBfloat16;
    parameters.scale = Codes(info.type, {}, {1});
    EXPECT_EQ(PlanDequantize(parameters).ok(), scale) << info.name;
    parameters.output_type = DataType::kUnspecified;
    EXPECT_EQ(PlanDequantize(parameters).ok(), is_float) << info.name;
    parameters = Parameters();
    parameters.output_type = info.type;
    EXPECT_EQ(PlanDequantize(parameters).ok(), is_float) << info.name;
  }
}

TEST(PlanDequantize, Errors) {
  DequantizeParameters parameters = Parameters();
  parameters.scale = Codes(DataType::kFloat8E8M0, {}, {127});
  EXPECT_EQ(Error(parameters),
            "output_type: output_type is not set, and scale is FLOAT8E8M0, which is not a type of "
            "y");
  parameters = Parameters();
  parameters.x.shape = {5};
  EXPECT_EQ(Error(parameters), "x: x has 4 bytes, UINT8 of shape [5] takes 5");
  parameters = Parameters();
  parameters.scale.shape = {2};
  EXPECT_EQ(Error(parameters), "scale: scale has 4 bytes, FLOAT of shape [2] takes 8");
  parameters.scale.shape = {3};
  EXPECT_EQ(Error(parameters), "scale: scale has 3 elements, x has 2 along axis 1");
  parameters = Parameters();
  parameters.zero_point = Zeros(DataType::kInt8, {});
  EXPECT_EQ(Error(parameters),
            "zero_point: zero_point is INT8, with this x Dequantize takes UINT8, INT32");
  parameters.zero_point = Zeros(DataType::kUint8, {2});
  EXPECT_EQ(Error(parameters), "zero_point: zero_point has shape [2], scale has []");
  parameters.zero_point = Zeros(DataType::kUint8, {1});
  EXPECT_EQ(Error(parameters), "OK");
  const Tensor float8 = Zeros(DataType::kFloat8E5M2, {2, 2});
  parameters.x = float8;
  parameters.zero_point = Zeros(DataType::kInt32, {});
  EXPECT_EQ(Error(parameters),
            "zero_point: zero_point is INT32, with this x Dequantize takes FLOAT8E5M2");
  const Tensor one = Codes(DataType::kFloat8E5M2, {}, {1});
  parameters.zero_point = one;
  EXPECT_EQ(Error(parameters), "zero_point: zero_point[0] is byte 1, FLOAT8E5M2 takes only 0");
  parameters.scale = Floats({2}, {1, 1});
  parameters.zero_point = Codes(DataType::kFloat8E5M2, {2}, {0, 0x80});
  EXPECT_EQ(Error(parameters), "zero_point: zero_point[1] is byte 128, FLOAT8E5M2 takes only 0");
}

TEST(PlanDequantize, TensorScale) {
  DequantizeParameters parameters = Parameters();
  const Tensor scale = Codes(DataType::kFloat8E4M3Fn, {2}, {0x38, 0x7E});
  const Tensor tensor_scale = Floats({}, {0.1f});
  parameters.scale = scale;
  parameters.tensor_scale = tensor_scale;
  parameters.output_type = DataType::kFloat16;
  EXPECT_TRUE(PlanDequantize(parameters)->has_tensor_scale);
  EXPECT_EQ(PlanDequantize(parameters)->tensor_scale, 0.1f);
  const Tensor two = Floats({2}, {1, 1});
  parameters.tensor_scale = two;
  EXPECT_EQ(Error(parameters), "tensor_scale: tensor_scale has 2 elements, it takes 1");
  const Tensor half = Floats(DataType::kFloat16, {}, {1});
  parameters.tensor_scale = half;
  EXPECT_EQ(Error(parameters), "tensor_scale: tensor_scale is FLOAT16, Dequantize takes FLOAT");
  parameters.tensor_scale = Floats({1, 1}, {0.1f});
  EXPECT_EQ(Error(parameters), "OK");
  parameters.tensor_scale->shape = {-1};
  EXPECT_EQ(Error(parameters),
            "tensor_scale: tensor_scale has length -1 in dimension 0 of shape [-1], lengths start "
            "at 0");
  parameters.tensor_scale = tensor_scale;
  parameters.tensor_scale->bytes = {};
  EXPECT_EQ(Error(parameters), "tensor_scale: tensor_scale has 0 bytes, FLOAT of shape [] takes 4");
}

}  // namespace plan_dequantize_test
}  // namespace quantd
