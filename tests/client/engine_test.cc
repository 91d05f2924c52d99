// Slabs: what goes through the core in parts is what goes through it whole.
#include "engine/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "absl/strings/str_cat.h"
#include "engine/method.h"
#include "engine/slabs.h"
#include "files/element_type.h"
#include "quantd/dequantize.h"

namespace quantd::cli {
namespace {

using Bytes = std::vector<uint8_t>;

Bytes Zeros(DataType type, const Shape& shape) {
  return Bytes(type == DataType::kUnspecified ? 0 : ByteSize(type, *ElementCount(shape, "")));
}

// Everything that a method makes of x.
struct Quantized {
  Bytes y, scale, zero_point, tensor_scale;
  QuantizationError error;
  absl::Status status;
};

Quantized QuantizeBy(Engine& engine, const Method& method, const QuantizedForm& form,
                     const TensorView& x) {
  Quantized q{Zeros(form.y, x.shape),
              Zeros(form.scale, form.scale_shape),
              Zeros(form.zero_point, form.scale_shape),
              Zeros(form.tensor_scale, {}),
              {},
              {}};
  q.status = method.Run(engine, x,
                        {absl::MakeSpan(q.y), absl::MakeSpan(q.scale), absl::MakeSpan(q.zero_point),
                         absl::MakeSpan(q.tensor_scale)},
                        &q.error);
  return q;
}

Bytes Back(Engine& engine, const Method& method, const QuantizedForm& form, const TensorView& x,
           const Quantized& q) {
  DequantizeParameters p;
  p.x = {form.y, x.shape, ByteChunks(q.y)};
  p.scale = {form.scale, form.scale_shape, ByteChunks(q.scale)};
  if (!q.zero_point.empty())
    p.zero_point = {form.zero_point, form.scale_shape, ByteChunks(q.zero_point)};
  if (!q.tensor_scale.empty()) p.tensor_scale = {form.tensor_scale, {}, ByteChunks(q.tensor_scale)};
  p.output_type = DataType::kFloat16;
  p.granularity = method.granularity();
  Bytes y = Zeros(DataType::kFloat16, x.shape);
  EXPECT_TRUE(engine.Dequantize(p, absl::MakeSpan(y)).ok());
  return y;
}

class SlabsTest : public ::testing::TestWithParam<const char*> {};

TEST_P(SlabsTest, GiveTheBytesOfTheWhole) {
  const uint32_t seed = std::random_device()();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937 random(seed);
  const auto below = [&random](int64_t n) { return static_cast<int64_t>(random() % n); };
  const auto whole = *MakeLocalEngine(2, "");
  int cut = 0;
  for (int round = 0; round < 60; ++round) {
    Shape shape(1 + below(4), 0);
    for (int64_t& length : shape) length = 1 + below(round % 2 == 0 ? 9 : 33);
    const auto rank = static_cast<int64_t>(shape.size());
    MethodFlags flags;
    flags.type = GetParam();
    flags.symmetric = below(3) == 0;
    flags.non_finite = "ignore";
    switch (below(3)) {
      case 0:
        flags.axis = below(rank);
        break;
      case 1:
        flags.axis = below(2 * rank) - rank;
        flags.block_size = 1 + below(20);
        break;
      default:
        for (int64_t d = 0; d < rank; ++d) {
          flags.block_shape.push_back(below(3) == 0 ? -1 : 1 + below(5));
        }
    }
    const auto method = Method::Of(flags);
    ASSERT_TRUE(method.ok()) << method.status();
    std::vector<float> values(*ElementCount(shape, ""));
    std::normal_distribution<float> normal;
    for (float& value : values) value = normal(random) * (below(8) == 0 ? 100.0f : 1.0f);
    if (below(4) == 0) values[below(values.size())] = NAN;
    const TensorView x{DataType::kFloat, shape,
                       ByteChunks({reinterpret_cast<const uint8_t*>(values.data()),
                                   values.size() * sizeof(float)})};
    const auto form = method->FormOf(x);
    if (!form.ok()) continue;  // NVFP4 with an axis
    const SlabLimits limits{1 + below(200), 1 + below(20)};
    const auto slabs = *MakeLocalEngine(2, "", limits);
    const Quantized one = QuantizeBy(*whole, *method, *form, x),
                    other = QuantizeBy(*slabs, *method, *form, x);
    if (absl::IsResourceExhausted(other.status)) continue;  // it says so
    ASSERT_EQ(one.status.code(), other.status.code()) << one.status << other.status;
    if (!one.status.ok()) continue;
    const std::string what = absl::StrCat(
        ShapeString(shape), " axis ", flags.axis.value_or(99), " block ", flags.block_size, " ",
        ShapeString(Shape(flags.block_shape.begin(), flags.block_shape.end())), " limits ",
        limits.elements, " ", limits.scales);
    ASSERT_EQ(one.scale, other.scale) << what;
    ASSERT_EQ(one.zero_point, other.zero_point) << what;
    ASSERT_EQ(one.tensor_scale, other.tensor_scale) << what;
    ASSERT_EQ(one.y, other.y) << what;
    EXPECT_NEAR(other.error.mean_squared_error, one.error.mean_squared_error,
                1e-9 * one.error.mean_squared_error);
    if (std::isfinite(one.error.sqnr_db)) {
      EXPECT_NEAR(other.error.sqnr_db, one.error.sqnr_db, 1e-6) << what;
    }
    EXPECT_EQ(other.error.max_absolute_error, one.error.max_absolute_error);
    EXPECT_EQ(other.error.saturated_elements, one.error.saturated_elements);
    EXPECT_EQ(other.error.non_finite_elements, one.error.non_finite_elements);
    EXPECT_EQ(Back(*whole, *method, *form, x, one), Back(*slabs, *method, *form, x, one)) << what;
    cut += *ElementCount(form->scale_shape, "") > limits.scales;
  }
  EXPECT_GT(cut, 5) << "too few were cut";
}

INSTANTIATE_TEST_SUITE_P(Types, SlabsTest,
                         ::testing::Values("uint8", "int8", "int4", "uint2", "int16",
                                           "float8e4m3fn", "float4e2m1", "mxfp4", "mxint8",
                                           "nvfp4"));

TEST(Slabs, GivenScalesTooMany) {
  const std::vector<float> values(40, 3.0f);
  std::vector<float> scales(40);
  for (size_t i = 0; i < 40; ++i) scales[i] = 0.25f * static_cast<float>(1 + i % 7);
  const auto view = [](const std::vector<float>& from, Shape shape) {
    return TensorView{DataType::kFloat, std::move(shape),
                      ByteChunks({reinterpret_cast<const uint8_t*>(from.data()), from.size() * 4})};
  };
  QuantizeParameters p;
  p.x = view(values, {5, 8});
  p.scale = view(scales, {5, 8});
  p.output_type = DataType::kUint4;
  p.report_error = true;
  QuantizationError one_error, other_error;
  Bytes one(20), other(20);
  ASSERT_TRUE((*MakeLocalEngine(1, ""))->Quantize(p, absl::MakeSpan(one), &one_error).ok());
  ASSERT_TRUE(
      (*MakeLocalEngine(1, "", {100, 3}))->Quantize(p, absl::MakeSpan(other), &other_error).ok());
  EXPECT_EQ(one, other);
  EXPECT_NEAR(one_error.sqnr_db, other_error.sqnr_db, 1e-9);
  // Scales that do not fit are the core's error, and nothing is read beyond them.
  p.scale = view(scales, {40});
  EXPECT_TRUE(absl::IsInvalidArgument(
      (*MakeLocalEngine(1, "", {100, 3}))->Quantize(p, absl::MakeSpan(other), &other_error)));
}

TEST(Slabs, AnIndexInAnErrorSaysFromWhereItCounts) {
  std::vector<float> values(64, 1.0f);
  values[40] = INFINITY;
  DynamicQuantizeParameters p;
  p.x = {
      DataType::kFloat, {64}, ByteChunks({reinterpret_cast<const uint8_t*>(values.data()), 256})};
  p.output_type = DataType::kInt8;
  p.granularity.axis = 0;
  Bytes y(64), scale(256), zero_point(64);
  const absl::Status status =
      (*MakeLocalEngine(1, "", {1000, 16}))
          ->DynamicQuantize(
              p, {absl::MakeSpan(y), absl::MakeSpan(scale), absl::MakeSpan(zero_point), {}},
              nullptr);
  EXPECT_THAT(std::string(status.message()),
              ::testing::AllOf(::testing::HasSubstr("of the elements from 32 on"),
                               ::testing::HasSubstr("x[8] is inf")));
}

TEST(Engine, AWrongInstructionSetIsRefused) {
  EXPECT_TRUE(absl::IsInvalidArgument(MakeLocalEngine(1, "avx1024").status()));
}

}  // namespace
}  // namespace quantd::cli
