// PlanQuantize: every error with its text, every choice of type, precision and quotient.
#include <cstring>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "quantd/quantize.h"
#include "tensors.h"

namespace quantd {
namespace plan_quantize_test {

const Tensor kX = Floats({2, 2}, {1, 2, 3, 4});
const Tensor kScale = Floats({}, {0.5f});

QuantizeParameters Parameters() { return {.x = kX, .scale = kScale}; }

std::string Error(const QuantizeParameters& parameters) {
  return ErrorText(PlanQuantize(parameters).status());
}

std::string ScaleError(const Tensor& scale) {
  QuantizeParameters parameters = Parameters();
  parameters.scale = scale;
  return Error(parameters);
}

std::string ZeroPointError(const Tensor& zero_point) {
  QuantizeParameters parameters = Parameters();
  parameters.zero_point = zero_point;
  return Error(parameters);
}

TEST(PlanQuantize, EveryTypeOfTheTable) {
  const DataType inputs[] = {DataType::kFloat, DataType::kFloat16, DataType::kBfloat16,
                             DataType::kInt32};
  const DataType scales[] = {DataType::kFloat, DataType::kFloat16, DataType::kBfloat16,
                             DataType::kInt32, DataType::kFloat8E8M0};
  for (const DataTypeInfo& x : kDataTypes) {
    const bool input = std::count(std::begin(inputs), std::end(inputs), x.type) > 0;
    const bool scale = std::count(std::begin(scales), std::end(scales), x.type) > 0;
    const bool output = x.type != DataType::kInt32 && x.type != DataType::kFloat8E8M0 &&
                        x.kind != DataTypeKind::kFloat;
    QuantizeParameters parameters = Parameters();
    parameters.x = Zeros(x.type, {2, 2});
    EXPECT_EQ(PlanQuantize(parameters).ok(), input) << x.name;
    parameters = Parameters();
    parameters.scale = Codes(x.type, {}, {1});
    EXPECT_EQ(PlanQuantize(parameters).ok(), scale) << x.name;
    parameters = Parameters();
    parameters.output_type = x.type;
    EXPECT_EQ(PlanQuantize(parameters).ok(), output) << x.name;
    parameters = Parameters();
    parameters.zero_point = Zeros(x.type, {});
    const absl::StatusOr<QuantizePlan> plan = PlanQuantize(parameters);
    EXPECT_EQ(plan.ok(), output) << x.name;
    if (output) {
      EXPECT_EQ(plan->output_type, x.type);
      EXPECT_EQ(plan->minimum, x.minimum);
      EXPECT_EQ(plan->maximum, x.maximum);
    }
  }
}

TEST(PlanQuantize, TypeErrors) {
  QuantizeParameters parameters = Parameters();
  parameters.x = Zeros(DataType::kInt8, {2, 2});
  EXPECT_EQ(Error(parameters), "x: x is INT8, Quantize takes FLOAT, FLOAT16, BFLOAT16, INT32");
  parameters = Parameters();
  parameters.x = TensorView();
  EXPECT_EQ(Error(parameters),
            "x: x has no data type, Quantize takes FLOAT, FLOAT16, BFLOAT16, INT32");
  parameters.x.data_type = static_cast<DataType>(7);
  EXPECT_EQ(Error(parameters),
            "x: x is unknown (7), Quantize takes FLOAT, FLOAT16, BFLOAT16, INT32");
  parameters = Parameters();
  parameters.scale = TensorView();
  EXPECT_EQ(Error(parameters).substr(0, 29), "scale: scale has no data type");
  parameters = Parameters();
  parameters.output_type = DataType::kFloat;
  EXPECT_EQ(Error(parameters),
            "output_type: output_type is FLOAT, Quantize gives the integers UINT8, INT8, UINT16, "
            "INT16, UINT4, INT4, UINT2, INT2 and the floats FLOAT8E4M3FN, FLOAT8E4M3FNUZ, "
            "FLOAT8E5M2, FLOAT8E5M2FNUZ, FLOAT6E2M3, FLOAT6E3M2, FLOAT4E2M1");
  parameters.output_type = static_cast<DataType>(-5);
  EXPECT_EQ(Error(parameters).substr(0, 12), "output_type:");
  parameters.output_type = DataType::kInt8;
  parameters.zero_point = Zeros(DataType::kUint8, {});
  EXPECT_EQ(Error(parameters), "output_type: output_type is INT8, zero_point is UINT8");
  parameters = Parameters();
  parameters.precision = DataType::kInt32;
  EXPECT_EQ(Error(parameters),
            "precision: precision is INT32, Quantize divides in FLOAT, FLOAT16, BFLOAT16");
}

TEST(PlanQuantize, SizesAgainstTheBytesThatArrived) {
  QuantizeParameters parameters = Parameters();
  parameters.x.shape = {3, 2};
  EXPECT_EQ(Error(parameters), "x: x has 16 bytes, FLOAT of shape [3, 2] takes 24");
  parameters.x.shape = {int64_t{1} << 40};
  EXPECT_EQ(Error(parameters),
            "x: x has 16 bytes, FLOAT of shape [1099511627776] takes 4398046511104");
  parameters.x.shape = {INT64_MAX, INT64_MAX};
  EXPECT_EQ(Error(parameters).substr(0, 12), "x: x of shap");
  parameters.x.shape = {-1, 4};
  EXPECT_EQ(Error(parameters).substr(0, 15), "x: x has length");
  parameters = Parameters();
  parameters.scale.shape = {int64_t{1} << 60};
  EXPECT_EQ(Error(parameters),
            "scale: scale has 1152921504606846976 elements, x has 2 along axis 1");
  // An empty x fits any number of scales, but the scales must be there.
  const Tensor empty = Floats({0, int64_t{1} << 40}, {});
  parameters.x = empty;
  parameters.scale.shape = {int64_t{1} << 40};
  EXPECT_EQ(Error(parameters),
            "scale: scale has 4 bytes, FLOAT of shape [1099511627776] takes 4398046511104");
  parameters = Parameters();
  parameters.zero_point = Zeros(DataType::kUint8, {});
  parameters.zero_point->bytes = kX.bytes();
  EXPECT_EQ(Error(parameters), "zero_point: zero_point has 16 bytes, UINT8 of shape [] takes 1");
}

TEST(PlanQuantize, ScaleErrors) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(ScaleError(Floats({2}, {1, 0})), "scale: scale[1] is 0, scales are finite and not 0");
  EXPECT_EQ(ScaleError(Floats({2}, {1, -0.0f})),
            "scale: scale[1] is -0, scales are finite and not 0");
  EXPECT_EQ(ScaleError(Floats({2}, {infinity, 1})),
            "scale: scale[0] is inf, scales are finite and not 0");
  EXPECT_EQ(ScaleError(Codes(DataType::kFloat8E8M0, {2}, {0, 0xFF})),
            "scale: scale[1] is nan, scales are finite and not 0");
  EXPECT_EQ(ScaleError(Zeros(DataType::kInt32, {})),
            "scale: scale[0] is 0, scales are finite and not 0");
  EXPECT_EQ(ScaleError(Floats({}, {-1e-45f})), "OK") << "negative and denormal are legal";
  QuantizeParameters parameters = Parameters();
  parameters.precision = DataType::kFloat16;
  const Tensor small = Floats({2}, {1, 1e-10f});
  parameters.scale = small;
  EXPECT_EQ(Error(parameters), "scale: scale[1] is 1e-10, which becomes 0 in FLOAT16");
  const Tensor large = Floats({}, {65520});
  parameters.scale = large;
  EXPECT_EQ(Error(parameters), "scale: scale[0] is 65520, which becomes inf in FLOAT16");
}

TEST(PlanQuantize, ZeroPointErrors) {
  EXPECT_EQ(ZeroPointError(Zeros(DataType::kUint8, {1})), "OK") << "[] and [1] are the same";
  EXPECT_EQ(ZeroPointError(Zeros(DataType::kUint8, {2})),
            "zero_point: zero_point has shape [2], scale has []");
  EXPECT_EQ(ZeroPointError(Zeros(DataType::kUint8, {1, 1})),
            "zero_point: zero_point has shape [1, 1], scale has []");
  EXPECT_EQ(ZeroPointError(Zeros(DataType::kInt32, {})).substr(0, 46),
            "zero_point: zero_point is INT32, Quantize take");
  EXPECT_EQ(ZeroPointError(Codes(DataType::kFloat8E4M3Fn, {}, {0})), "OK");
  EXPECT_EQ(ZeroPointError(Codes(DataType::kFloat8E4M3Fn, {}, {0x80})),
            "zero_point: zero_point[0] is byte 128, FLOAT8E4M3FN takes only 0");
  EXPECT_EQ(ZeroPointError(Codes(DataType::kFloat4E2M1, {}, {3})), "OK");
  EXPECT_EQ(ZeroPointError(Codes(DataType::kFloat6E2M3, {}, {3})), "OK");
}

TEST(PlanQuantize, PrecisionAndQuotient) {
  struct Row {
    DataType scale, precision, output, expected;
    Quotient quotient;
  };
  const DataType none = DataType::kUnspecified, f32 = DataType::kFloat, f16 = DataType::kFloat16,
                 bf16 = DataType::kBfloat16, u8 = DataType::kUint8;
  const Row rows[] = {
      {f32, none, u8, f32, Quotient::kReciprocal},
      {f32, none, DataType::kInt2, f32, Quotient::kReciprocal},
      {f32, none, DataType::kInt16, f32, Quotient::kDivide},
      {f32, none, DataType::kFloat8E5M2, f32, Quotient::kDivide},
      {f32, none, DataType::kFloat4E2M1, f32, Quotient::kDivide},
      {f16, none, u8, f16, Quotient::kGivenFloat16},
      {bf16, none, DataType::kInt16, bf16, Quotient::kGivenBfloat16},
      {f16, f32, u8, f32, Quotient::kReciprocal},
      {f32, bf16, u8, bf16, Quotient::kGivenBfloat16},
      {f16, bf16, u8, bf16, Quotient::kGivenBfloat16},
      {DataType::kInt32, none, u8, f32, Quotient::kReciprocal},
      {DataType::kFloat8E8M0, none, u8, f32, Quotient::kReciprocal},
      {DataType::kFloat8E8M0, f16, u8, f16, Quotient::kGivenFloat16},
  };
  for (const Row& row : rows) {
    QuantizeParameters parameters = Parameters();
    const Tensor scale = Codes(row.scale, {},
                               {row.scale == DataType::kInt32        ? 3u
                                : row.scale == DataType::kFloat8E8M0 ? 120u
                                : row.scale == f32                   ? 0x3F800000u
                                                                     : 0x3C00u});
    parameters.scale = scale;
    parameters.precision = row.precision;
    parameters.output_type = row.output;
    const QuantizePlan plan = PlanQuantize(parameters).value();
    EXPECT_EQ(plan.precision, row.expected) << Name(row.scale) << " " << Name(row.precision);
    EXPECT_EQ(plan.quotient, row.quotient) << Name(row.scale) << " " << Name(row.output);
  }
}

TEST(PlanQuantize, ReciprocalOnlyInItsRangeOfScales) {
  for (const auto& [value, quotient] :
       {std::pair{0x1p-100f, Quotient::kReciprocal}, std::pair{-0x1p76f, Quotient::kReciprocal},
        std::pair{std::nextafter(0x1p-100f, 0.0f), Quotient::kDivide},
        std::pair{std::nextafter(0x1p76f, 1e38f), Quotient::kDivide}}) {
    QuantizeParameters parameters = Parameters();
    const Tensor scale = Floats({2}, {1, value});
    parameters.scale = scale;
    EXPECT_EQ(PlanQuantize(parameters)->quotient, quotient) << value;
  }
}

TEST(PlanQuantize, BeforeRounding) {
  QuantizeParameters parameters = Parameters();
  parameters.zero_point_order = ZeroPointOrder::kBeforeRounding;
  const Tensor half = Floats(DataType::kFloat16, {}, {0.5f});
  parameters.scale = half;
  const Tensor int32 = Integers(DataType::kInt32, {}, {16777217});
  parameters.zero_point = int32;
  QuantizePlan plan = PlanQuantize(parameters).value();
  EXPECT_EQ(plan.output_type, DataType::kUint8) << "output_type is not set";
  EXPECT_EQ(plan.precision, DataType::kFloat) << "whatever the scale's type";
  EXPECT_EQ(plan.quotient, Quotient::kDivide);
  EXPECT_EQ(plan.zero_points.type, DataType::kInt32);
  const Tensor int8 = Integers(DataType::kInt8, {}, {-3});
  parameters.zero_point = int8;
  EXPECT_EQ(PlanQuantize(parameters)->output_type, DataType::kInt8);
  parameters.output_type = DataType::kUint16;
  EXPECT_EQ(PlanQuantize(parameters)->output_type, DataType::kUint16);
  const Tensor uint16 = Integers(DataType::kUint16, {}, {3});
  parameters.zero_point = uint16;
  EXPECT_EQ(Error(parameters), "OK");
  parameters.output_type = DataType::kUint8;
  EXPECT_EQ(Error(parameters),
            "zero_point: zero_point is UINT16, BEFORE_ROUNDING takes the output's type or INT32, "
            "INT8, UINT8");
  parameters.zero_point.reset();
  parameters.output_type = DataType::kFloat4E2M1;
  EXPECT_EQ(Error(parameters),
            "zero_point_order: zero_point_order is BEFORE_ROUNDING, the output is FLOAT4E2M1: only "
            "integers are possible");
  parameters.output_type = DataType::kUint8;
  parameters.precision = DataType::kFloat16;
  EXPECT_EQ(Error(parameters), "precision: precision is FLOAT16, BEFORE_ROUNDING divides in FLOAT");
}

// Scales are checked a tile at a time: an error is found at any place.
TEST(PlanQuantize, EveryScaleIsLookedAt) {
  for (const DataType precision : {DataType::kFloat, DataType::kFloat16}) {
    for (const int64_t wrong : {0, 1023, 1024, 2999}) {
      std::vector<float> scales(3000, 0.5f);
      scales[static_cast<size_t>(wrong)] = 0x1p-30f;  // 0 in FLOAT16
      scales.back() = precision == DataType::kFloat ? NAN : scales.back();
      const std::vector<float> values(scales.size());
      for (const size_t misalignment : {0, 1}) {
        const Tensor aligned = Floats({3000}, scales);
        const Misaligned bytes(aligned.bytes(), misalignment);
        QuantizeParameters parameters;
        parameters.x = Floats({3000}, values);
        parameters.scale = aligned;
        parameters.scale.bytes = bytes.bytes();
        parameters.granularity.axis = 0;
        parameters.precision = precision;
        EXPECT_EQ(Error(parameters),
                  precision == DataType::kFloat
                      ? "scale: scale[2999] is nan, scales are finite and not 0"
                      : absl::StrCat("scale: scale[", wrong,
                                     "] is 9.31323e-10, which becomes 0 in FLOAT16"));
      }
    }
  }
}

}  // namespace plan_quantize_test
}  // namespace quantd
