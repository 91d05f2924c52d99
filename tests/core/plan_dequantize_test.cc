// PlanDequantize: every error with its field and numbers, and the scales and zero points that it
// makes.
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
  return FieldAndNumbers(PlanDequantize(parameters).status());
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
  EXPECT_EQ(Error(parameters), "output_type");
  parameters = Parameters();
  parameters.x.shape = {5};
  EXPECT_EQ(Error(parameters), "x 4 5 5");
  parameters = Parameters();
  parameters.scale.shape = {2};
  EXPECT_EQ(Error(parameters), "scale 4 2 8");
  parameters.scale.shape = {3};
  EXPECT_EQ(Error(parameters), "scale 3 2 1");
  parameters = Parameters();
  parameters.zero_point = Zeros(DataType::kInt8, {});
  EXPECT_EQ(Error(parameters), "zero_point");
  parameters.zero_point = Zeros(DataType::kUint8, {2});
  EXPECT_EQ(Error(parameters), "zero_point 2");
  parameters.zero_point = Zeros(DataType::kUint8, {1});
  EXPECT_EQ(Error(parameters), "OK");
  const Tensor float8 = Zeros(DataType::kFloat8E5M2, {2, 2});
  parameters.x = float8;
  parameters.zero_point = Zeros(DataType::kInt32, {});
  EXPECT_EQ(Error(parameters), "zero_point");
  const Tensor one = Codes(DataType::kFloat8E5M2, {}, {1});
  parameters.zero_point = one;
  EXPECT_EQ(Error(parameters), "zero_point 0 1 0");
  parameters.scale = Floats({2}, {1, 1});
  parameters.zero_point = Codes(DataType::kFloat8E5M2, {2}, {0, 0x80});
  EXPECT_EQ(Error(parameters), "zero_point 1 128 0");
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
  EXPECT_EQ(Error(parameters), "tensor_scale 2 1");
  const Tensor half = Floats(DataType::kFloat16, {}, {1});
  parameters.tensor_scale = half;
  EXPECT_EQ(Error(parameters), "tensor_scale");
  parameters.tensor_scale = Floats({1, 1}, {0.1f});
  EXPECT_EQ(Error(parameters), "OK");
  parameters.tensor_scale->shape = {-1};
  EXPECT_EQ(Error(parameters), "tensor_scale -1 0 -1 0");
  parameters.tensor_scale = tensor_scale;
  parameters.tensor_scale->bytes = {};
  EXPECT_EQ(Error(parameters), "tensor_scale 0 4");
}

}  // namespace plan_dequantize_test
}  // namespace quantd
