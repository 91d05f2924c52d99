// PlanQuantize: every error with its field and numbers, every choice of type, precision and
// quotient.
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
  return FieldAndNumbers(PlanQuantize(parameters).status());
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
  EXPECT_EQ(Error(parameters), "x");
  parameters = Parameters();
  parameters.x = TensorView();
  EXPECT_EQ(Error(parameters), "x");
  parameters.x.data_type = static_cast<DataType>(7);
  EXPECT_EQ(Error(parameters), "x 7");
  parameters = Parameters();
  parameters.scale = TensorView();
  EXPECT_EQ(Error(parameters).substr(0, 5), "scale");
  parameters = Parameters();
  parameters.output_type = DataType::kFloat;
  EXPECT_EQ(Error(parameters), "output_type");
  parameters.output_type = static_cast<DataType>(-5);
  EXPECT_EQ(Error(parameters).substr(0, 11), "output_type");
  parameters.output_type = DataType::kInt8;
  parameters.zero_point = Zeros(DataType::kUint8, {});
  EXPECT_EQ(Error(parameters), "output_type");
  parameters = Parameters();
  parameters.precision = DataType::kInt32;
  EXPECT_EQ(Error(parameters), "precision");
}

TEST(PlanQuantize, SizesAgainstTheBytesThatArrived) {
  QuantizeParameters parameters = Parameters();
  parameters.x.shape = {3, 2};
  EXPECT_EQ(Error(parameters), "x 16 3 2 24");
  parameters.x.shape = {int64_t{1} << 40};
  EXPECT_EQ(Error(parameters), "x 16 1099511627776 4398046511104");
  parameters.x.shape = {INT64_MAX, INT64_MAX};
  EXPECT_EQ(Error(parameters).substr(0, 1), "x");
  parameters.x.shape = {-1, 4};
  EXPECT_EQ(Error(parameters).substr(0, 1), "x");
  parameters = Parameters();
  parameters.scale.shape = {int64_t{1} << 60};
  EXPECT_EQ(Error(parameters), "scale 1152921504606846976 2 1");
  // An empty x fits any number of scales, but the scales must be there.
  const Tensor empty = Floats({0, int64_t{1} << 40}, {});
  parameters.x = empty;
  parameters.scale.shape = {int64_t{1} << 40};
  EXPECT_EQ(Error(parameters), "scale 4 1099511627776 4398046511104");
  parameters = Parameters();
  parameters.zero_point = Zeros(DataType::kUint8, {});
  parameters.zero_point->bytes = kX.bytes();
  EXPECT_EQ(Error(parameters), "zero_point 16 1");
}

TEST(PlanQuantize, ScaleErrors) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(ScaleError(Floats({2}, {1, 0})), "scale 1 0 0");
  EXPECT_EQ(ScaleError(Floats({2}, {1, -0.0f})), "scale 1 -0 0");
  EXPECT_EQ(ScaleError(Floats({2}, {infinity, 1})), "scale 0 inf 0");
  EXPECT_EQ(ScaleError(Codes(DataType::kFloat8E8M0, {2}, {0, 0xFF})), "scale 1 nan 0");
  EXPECT_EQ(ScaleError(Zeros(DataType::kInt32, {})), "scale 0 0 0");
  EXPECT_EQ(ScaleError(Floats({}, {-1e-45f})), "OK") << "negative and denormal are legal";
  QuantizeParameters parameters = Parameters();
  parameters.precision = DataType::kFloat16;
  const Tensor small = Floats({2}, {1, 1e-10f});
  parameters.scale = small;
  EXPECT_EQ(Error(parameters), "scale 1 1e-10 0");
  const Tensor large = Floats({}, {65520});
  parameters.scale = large;
  EXPECT_EQ(Error(parameters), "scale 0 65520 inf");
}

TEST(PlanQuantize, ZeroPointErrors) {
  EXPECT_EQ(ZeroPointError(Zeros(DataType::kUint8, {1})), "OK") << "[] and [1] are the same";
  EXPECT_EQ(ZeroPointError(Zeros(DataType::kUint8, {2})), "zero_point 2");
  EXPECT_EQ(ZeroPointError(Zeros(DataType::kUint8, {1, 1})), "zero_point 1 1");
  EXPECT_EQ(ZeroPointError(Zeros(DataType::kInt32, {})).substr(0, 10), "zero_point");
  EXPECT_EQ(ZeroPointError(Codes(DataType::kFloat8E4M3Fn, {}, {0})), "OK");
  EXPECT_EQ(ZeroPointError(Codes(DataType::kFloat8E4M3Fn, {}, {0x80})), "zero_point 0 128 0");
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
  EXPECT_EQ(Error(parameters), "zero_point");
  parameters.zero_point.reset();
  parameters.output_type = DataType::kFloat4E2M1;
  EXPECT_EQ(Error(parameters), "zero_point_order");
  parameters.output_type = DataType::kUint8;
  parameters.precision = DataType::kFloat16;
  EXPECT_EQ(Error(parameters), "precision");
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
        EXPECT_EQ(Error(parameters), precision == DataType::kFloat
                                         ? "scale 2999 nan 0"
                                         : absl::StrCat("scale ", wrong, " 9.31323e-10 0"));
      }
    }
  }
}

}  // namespace plan_quantize_test
}  // namespace quantd
