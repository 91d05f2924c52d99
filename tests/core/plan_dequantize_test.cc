// PlanDequantize: every error with its text, and the scales and zero points that it makes.
#include <bit>
#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "quantd/dequantize.h"
#include "tensors.h"

namespace quantd {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

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

// Reading is written for many scales; decoding one is the specification.
TEST(PlanDequantize, EveryCodeOfAScaleAndOfAZeroPointIsRead) {
  for (const DataTypeInfo& info : kDataTypes) {
    const bool integer = info.kind == DataTypeKind::kInteger;
    std::vector<uint32_t> codes;
    const uint32_t count = info.bits > 16 ? 65536 : 1u << info.bits;
    for (uint32_t i = 0; i < count; ++i) codes.push_back(info.bits > 16 ? i * 65537u : i);
    const Shape shape = {count};
    const Tensor all = Codes(info.type, shape, codes);
    // In one piece, and cut within an element.
    Pieces two;
    two.Append(all.bytes().subspan(0, all.bytes().size() / 2 + 1));
    two.Append(all.bytes().subspan(all.bytes().size() / 2 + 1));
    TensorView pieces = all;
    pieces.bytes = two.chunks();
    for (const TensorView& tensor : {all.view(), pieces}) {
      DequantizeParameters parameters;
      parameters.granularity.axis = 0;
      parameters.output_type = DataType::kFloat;
      parameters.x = Zeros(integer ? info.type : DataType::kUint8, shape);
      parameters.scale = integer ? Zeros(DataType::kFloat, shape).view() : tensor;
      if (integer) parameters.zero_point = tensor;
      const absl::StatusOr<DequantizePlan> plan = PlanDequantize(parameters);
      if (!plan.ok()) continue;  // no type of a scale
      for (uint32_t i = 0; i < count; ++i) {
        if (integer) {
          ASSERT_EQ(plan->zero_points[i], DecodeInteger(info.type, codes[i])) << info.name << i;
        } else {
          ASSERT_EQ(std::bit_cast<uint32_t>(plan->scales[i]),
                    std::bit_cast<uint32_t>(DecodeFloat(info.type, codes[i])))
              << info.name << " " << codes[i];
        }
      }
    }
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

TEST(PlanDequantize, AnyScaleValueIsAccepted) {
  DequantizeParameters parameters = Parameters();
  parameters.granularity.axis = 1;
  const Tensor scale = Floats({2}, {0, std::numeric_limits<float>::infinity()});
  parameters.scale = scale;
  EXPECT_THAT(PlanDequantize(parameters)->scales,
              ElementsAre(0, std::numeric_limits<float>::infinity()));
  const Tensor nan = Codes(DataType::kFloat8E8M0, {2}, {0xFF, 0});
  parameters.scale = nan;
  parameters.output_type = DataType::kFloat;
  const FloatColumn scales = PlanDequantize(parameters)->scales;
  EXPECT_TRUE(std::isnan(scales[0]));
  EXPECT_EQ(scales[1], 0x1p-127f);
}

TEST(PlanDequantize, TensorScale) {
  DequantizeParameters parameters = Parameters();
  const Tensor scale = Codes(DataType::kFloat8E4M3Fn, {2}, {0x38, 0x7E});
  const Tensor tensor_scale = Floats({}, {0.1f});
  parameters.scale = scale;
  parameters.tensor_scale = tensor_scale;
  parameters.output_type = DataType::kFloat16;
  EXPECT_THAT(PlanDequantize(parameters)->scales, ElementsAre(0.1f, 448.0f * 0.1f));
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
  parameters.tensor_scale->bytes.Clear();
  EXPECT_EQ(Error(parameters), "tensor_scale: tensor_scale has 0 bytes, FLOAT of shape [] takes 4");
}

TEST(PlanDequantize, ZeroPoints) {
  DequantizeParameters parameters = Parameters();
  const Tensor scale = Floats({2}, {1, 1});
  parameters.scale = scale;
  const Tensor int32 = Integers(DataType::kInt32, {2}, {INT32_MIN, 7});
  parameters.zero_point = int32;
  EXPECT_THAT(PlanDequantize(parameters)->zero_points, ElementsAre(INT32_MIN, 7));
  const Tensor zeros = Zeros(DataType::kUint8, {2});
  parameters.zero_point = zeros;
  EXPECT_THAT(PlanDequantize(parameters)->zero_points, IsEmpty());
  const Tensor float4 = Zeros(DataType::kFloat4E2M1, {2, 2});
  parameters.x = float4;
  const Tensor codes = Codes(DataType::kFloat4E2M1, {2}, {0, 8});
  parameters.zero_point = codes;
  EXPECT_THAT(PlanDequantize(parameters)->zero_points, ElementsAre(0, 8)) << "codes";
  const Tensor int2 = Zeros(DataType::kInt2, {2, 2});
  parameters.x = int2;
  const Tensor packed = Integers(DataType::kInt2, {2}, {-2, 1});
  parameters.zero_point = packed;
  EXPECT_THAT(PlanDequantize(parameters)->zero_points, ElementsAre(-2, 1));
}

}  // namespace
}  // namespace quantd
