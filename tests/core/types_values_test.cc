// Values written by hand become bytes and values again, or are refused by index.
#include <cmath>
#include <limits>

#include "gtest/gtest.h"
#include "oracle.h"
#include "quantd/quantization_error.h"
#include "quantd/values.h"
#include "tensors.h"

namespace quantd {
namespace types_values_test {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::string FloatError(DataType type, const std::vector<float>& values) {
  return FieldAndNumbers(PackFloats(type, values, "x.float_values").status());
}

std::string IntegerError(DataType type, const std::vector<int64_t>& values) {
  return FieldAndNumbers(PackIntegers(type, values, "x.int_values").status());
}

TEST(Values, EveryCodeOfEveryTypeComesBack) {
  for (const DataTypeInfo& info : kDataTypes) {
    if (info.bits > 16) continue;
    std::vector<uint32_t> codes(size_t{1} << info.bits);
    for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<uint32_t>(i);
    const int64_t count = static_cast<int64_t>(codes.size());
    const Tensor tensor = Codes(info.type, {count}, codes);
    if (info.kind == DataTypeKind::kInteger) {
      const std::vector<int64_t> values = UnpackIntegers(info.type, count, tensor.view().bytes);
      EXPECT_EQ(PackIntegers(info.type, values, "x").value(),
                std::vector<uint8_t>(tensor.bytes().begin(), tensor.bytes().end()))
          << info.name;
      continue;
    }
    const std::vector<float> values = UnpackFloats(info.type, count, tensor.view().bytes);
    const std::vector<uint8_t> packed = PackFloats(info.type, values, "x").value();
    for (int64_t i = 0; i < count; ++i) {
      const uint32_t code = LoadCode(info.type, packed.data(), i);
      if (std::isnan(values[i])) {
        EXPECT_TRUE(std::isnan(DecodeFloat(info.type, code))) << info.name << " " << i;
      } else {
        EXPECT_EQ(code, static_cast<uint32_t>(i)) << info.name;
      }
    }
  }
}

TEST(Values, FloatAndInt32ComeBack) {
  const std::vector<float> floats = {0.0f, -0.0f, 1e-45f, -kInfinity, 3.5f};
  const std::vector<uint8_t> packed = PackFloats(DataType::kFloat, floats, "x").value();
  EXPECT_EQ(UnpackFloats(DataType::kFloat, 5, packed), floats);
  const std::vector<int64_t> integers = {INT32_MIN, -1, 0, INT32_MAX};
  const std::vector<uint8_t> bytes = PackIntegers(DataType::kInt32, integers, "x").value();
  EXPECT_EQ(UnpackIntegers(DataType::kInt32, 4, bytes), integers);
}

TEST(Values, WhatTheTypeHasNotIsRefused) {
  EXPECT_EQ(FloatError(DataType::kFloat16, {1, 0.1f}), "x.float_values 1 0.1");
  EXPECT_NE(FloatError(DataType::kFloat16, {65520}), "OK");
  EXPECT_EQ(FloatError(DataType::kFloat16, {65504, kInfinity, kNan, 0x1p-24f}), "OK");
  EXPECT_NE(FloatError(DataType::kFloat16, {0x1p-25f}), "OK");
  EXPECT_NE(FloatError(DataType::kFloat8E4M3Fn, {kInfinity}), "OK");
  EXPECT_NE(FloatError(DataType::kFloat8E4M3Fn, {464}), "OK");
  EXPECT_EQ(FloatError(DataType::kFloat8E4M3Fn, {448, kNan}), "OK");
  EXPECT_EQ(FloatError(DataType::kFloat8E5M2, {kInfinity, -57344}), "OK");
  EXPECT_NE(FloatError(DataType::kFloat4E2M1, {kNan}), "OK");
  EXPECT_NE(FloatError(DataType::kFloat4E2M1, {5}), "OK");
  EXPECT_EQ(FloatError(DataType::kFloat8E8M0, {0x1p-127f, 1, 0x1p127f, kNan}), "OK");
  EXPECT_NE(FloatError(DataType::kFloat8E8M0, {3}), "OK");
  EXPECT_NE(FloatError(DataType::kFloat8E8M0, {0}), "OK");
  EXPECT_NE(FloatError(DataType::kFloat8E8M0, {-1}), "OK");
  EXPECT_NE(FloatError(DataType::kFloat8E8M0, {0x1p-128f}), "OK");
  EXPECT_NE(FloatError(DataType::kFloat8E8M0, {kInfinity}), "OK");
  EXPECT_EQ(FloatError(DataType::kUint8, {1}), "x.float_values");
  EXPECT_EQ(IntegerError(DataType::kInt4, {7, -8, 8}), "x.int_values 2 8 -8 7");
  EXPECT_NE(IntegerError(DataType::kUint2, {4}), "OK");
  EXPECT_NE(IntegerError(DataType::kInt32, {int64_t{1} << 31}), "OK");
  EXPECT_NE(IntegerError(DataType::kFloat, {1}), "OK");
  EXPECT_NE(IntegerError(DataType::kUnspecified, {1}), "OK");
}

TEST(ErrorSums, AddAndFinish) {
  ErrorSums sums;
  EXPECT_EQ(sums.Finish().sqnr_db, std::numeric_limits<double>::infinity());
  EXPECT_EQ(sums.Finish().mean_squared_error, 0);
  oracle::AddElement(sums, 10, 9, false);
  ErrorSums other;
  oracle::AddElement(other, 0, 3, true);
  oracle::AddElement(other, kInfinity, 3, true);
  oracle::AddElement(other, kNan, 3, false);
  sums.Add(other);
  const QuantizationError error = sums.Finish();
  EXPECT_DOUBLE_EQ(error.sqnr_db, 10);  // 100 / (1 + 9)
  EXPECT_DOUBLE_EQ(error.mean_squared_error, 5);
  EXPECT_EQ(error.max_absolute_error, 3);
  EXPECT_EQ(error.saturated_elements, 2u);
  EXPECT_EQ(error.non_finite_elements, 2u);
}

TEST(ErrorSums, KeepANan) {
  ErrorSums sums;
  oracle::AddElement(sums, 1, kNan, false);
  oracle::AddElement(sums, 1, 0, false);
  EXPECT_TRUE(std::isnan(sums.Finish().max_absolute_error));
  ErrorSums other;
  oracle::AddElement(other, 1, 0, false);
  other.Add(sums);
  EXPECT_TRUE(std::isnan(other.Finish().max_absolute_error));
  oracle::AddElement(sums, 5, 0, false);
  other.Add(sums);
  EXPECT_TRUE(std::isnan(other.Finish().max_absolute_error));
  ErrorSums small;
  oracle::AddElement(small, 1, 0, false);
  ErrorSums large;
  oracle::AddElement(large, 9, 0, false);
  large.Add(small);
  EXPECT_EQ(large.Finish().max_absolute_error, 9);
}

}  // namespace types_values_test
}  // namespace quantd
