// One element of Quantize and Dequantize: the cases that the rules name, and those where other
// implementations go wrong.
#include <cmath>
#include <random>

#include "gtest/gtest.h"
#include "rules/elements.h"

namespace quantd::rules {
namespace rules_elements_test {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

ElementRule Rule(DataType type) {
  ElementRule rule;
  rule.output_type = type;
  rule.minimum = static_cast<int32_t>(Info(type).minimum);
  rule.maximum = static_cast<int32_t>(Info(type).maximum);
  return rule;
}

int64_t Integer(const ElementRule& rule, float x, float scale, float zero_point = 0) {
  return DecodeInteger(rule.output_type, QuantizeElement(rule, x, scale, zero_point).code);
}

TEST(Codes, PackFromTheLowBits) {
  uint8_t bytes[4] = {};
  for (int i = 0; i < 3; ++i) StoreCode(DataType::kUint4, bytes, i, static_cast<uint32_t>(i + 1));
  EXPECT_EQ(bytes[0], 0x21);
  EXPECT_EQ(bytes[1], 0x03);
  uint8_t pairs[2] = {};
  const uint32_t codes[] = {3, 2, 1, 0, 2};
  for (int i = 0; i < 5; ++i) StoreCode(DataType::kInt2, pairs, i, codes[i]);
  EXPECT_EQ(pairs[0], 0b00011011);
  EXPECT_EQ(pairs[1], 0b10);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(LoadCode(DataType::kInt2, pairs, i), codes[i]);
  EXPECT_EQ(DecodeInteger(DataType::kInt2, 2), -2);
  EXPECT_EQ(DecodeInteger(DataType::kUint2, 2), 2);
  StoreCode(DataType::kInt32, bytes, 0, 0xFFFFFFFE);
  EXPECT_EQ(DecodeInteger(DataType::kInt32, LoadCode(DataType::kInt32, bytes, 0)), -2);
  EXPECT_EQ(bytes[0], 0xFE);
}

TEST(Quantize, IsATrueDivision) {
  const ElementRule rule = Rule(DataType::kInt8);
  EXPECT_EQ(Integer(rule, -2.5f, std::bit_cast<float>(0x3CA0A0A1u)), -127);
  EXPECT_EQ(Integer(rule, 2.5f, 1), 2);
  EXPECT_EQ(Integer(rule, 3.5f, 1), 4);
  EXPECT_EQ(Integer(rule, -2.5f, 1), -2);
  EXPECT_EQ(Integer(rule, 3, -2), -2);
  EXPECT_EQ(Integer(rule, 3e-39f, 1e-39f), 3) << "a denormal scale";
}

TEST(Quantize, TheZeroPointComesAfterRoundingUnlessBefore) {
  ElementRule rule = Rule(DataType::kUint8);
  EXPECT_EQ(Integer(rule, 3, 2, 1), 3);
  rule.zero_point_order = ZeroPointOrder::kBeforeRounding;
  EXPECT_EQ(Integer(rule, 3, 2, 1), 2);
  EXPECT_EQ(Integer(rule, kNan, 2, 1), 0);
  EXPECT_EQ(Integer(rule, kInfinity, 2, 1), 255);
}

TEST(Quantize, WhatNoIntegerHolds) {
  for (const DataTypeInfo& info : kDataTypes) {
    if (info.kind != DataTypeKind::kInteger || info.bits > 16) continue;
    const ElementRule rule = Rule(info.type);
    EXPECT_EQ(Integer(rule, kInfinity, 1, 1), info.maximum) << info.name;
    EXPECT_EQ(Integer(rule, 3e38f, 1e-38f), info.maximum) << info.name;
    EXPECT_EQ(Integer(rule, 2147483648.0f, 1), info.maximum) << info.name;
    EXPECT_EQ(Integer(rule, -kInfinity, 1, 1), info.minimum) << info.name;
    EXPECT_EQ(Integer(rule, -3e38f, 1), info.minimum) << info.name;
    EXPECT_EQ(Integer(rule, kNan, 1, 1), info.minimum) << info.name;
    EXPECT_EQ(Integer(rule, -kNan, 1), info.minimum) << info.name;
    EXPECT_TRUE(QuantizeElement(rule, kInfinity, 1, 0).saturated);
    EXPECT_FALSE(QuantizeElement(rule, kNan, 1, 0).saturated);
    const float top = static_cast<float>(info.maximum);
    EXPECT_FALSE(QuantizeElement(rule, top + 0.25f, 1, 0).saturated);
    EXPECT_TRUE(QuantizeElement(rule, top + 0.75f, 1, 0).saturated);
  }
}

TEST(Quantize, RoundsXScaleAndQuotientToThePrecision) {
  // 1000 / 3 is 333.25 in FLOAT16 (steps of 1/4), 333.33 in FLOAT and 334 in BFLOAT16 (steps of 2).
  ElementRule rule = Rule(DataType::kUint16);
  EXPECT_EQ(Integer(rule, 333.5f, 1), 334);
  rule.precision = DataType::kFloat16;
  EXPECT_EQ(Integer(rule, 333.4f, 1), 334) << "x becomes 333.5, a tie that goes to even";
  EXPECT_EQ(Integer(rule, 1e6f, 1), 65535) << "x becomes infinite";
  rule.precision = DataType::kBfloat16;
  EXPECT_EQ(Integer(rule, 1000, 3), 334) << "the quotient is rounded";
}

TEST(Quantize, Float8KeepsTheSignOfNan) {
  const ElementRule rule = Rule(DataType::kFloat8E4M3Fn);
  for (float scale : {1.0f, -1.0f}) {
    EXPECT_EQ(QuantizeElement(rule, kNan, scale, 0).code, 0x7Fu);
    EXPECT_EQ(QuantizeElement(rule, -kNan, scale, 0).code, 0xFFu);
  }
  EXPECT_EQ(QuantizeElement(rule, 1, -1, 0).code, 0xB8u);
  EXPECT_EQ(QuantizeElement(rule, 0, -1, 0).code, 0x80u);
  EXPECT_FALSE(QuantizeElement(rule, 464, 1, 0).saturated);
  EXPECT_TRUE(QuantizeElement(rule, 465, 1, 0).saturated);
}

TEST(Quantize, MiniFloatsAddAZeroPointOnlyWhenGiven) {
  struct Row {
    DataType type;
    uint32_t negative_zero, one_and_a_half, largest;
  };
  for (const Row& row :
       {Row{DataType::kFloat4E2M1, 8, 3, 7}, Row{DataType::kFloat6E2M3, 32, 12, 31},
        Row{DataType::kFloat6E3M2, 32, 14, 31}}) {
    SCOPED_TRACE(Name(row.type));
    ElementRule rule = Rule(row.type);
    EXPECT_EQ(QuantizeElement(rule, -0.0f, 1, 0).code, row.negative_zero);
    rule.has_zero_point = true;
    EXPECT_EQ(QuantizeElement(rule, -0.0f, 1, 0).code, 0u);
    EXPECT_EQ(QuantizeElement(rule, -0.0f, 1, -0.0f).code, row.negative_zero);
    EXPECT_EQ(QuantizeElement(rule, 1, 1, 0.5f).code, row.one_and_a_half);
    EXPECT_EQ(QuantizeElement(rule, kNan, -1, 0.5f).code, row.negative_zero);
    EXPECT_EQ(QuantizeElement(rule, -kNan, -1, 0.5f).code, 0u);
    rule.saturate = false;
    EXPECT_EQ(QuantizeElement(rule, 100, 1, 0).code, row.largest) << "always saturates";
  }
}

TEST(Dequantize, SubtractsInFloatButInt32InIntegers) {
  EXPECT_EQ(DequantizeElement(DataType::kUint8, 5, 0.5f, 7), -1);
  EXPECT_EQ(DequantizeElement(DataType::kInt8, 0x80, 2, 127), -510);
  EXPECT_EQ(DequantizeElement(DataType::kInt32, 16777217, 1, 16777216), 1);
  EXPECT_EQ(DequantizeElement(DataType::kInt32, 0x7FFFFFFF, 1, INT32_MIN), 4294967296.0f);
  EXPECT_EQ(DequantizeElement(DataType::kUint8, 5, 1, 16777217), -16777211)
      << "the zero point becomes 16777216 in FLOAT";
  EXPECT_EQ(DequantizeElement(DataType::kFloat4E2M1, 7, 1, 2), 5) << "a code: 2 is the value 1";
  EXPECT_EQ(DequantizeElement(DataType::kFloat6E2M3, 31, 1, 8), 6.5f);
  EXPECT_EQ(DequantizeElement(DataType::kFloat6E3M2, 63, 0.5f, 12), -14.5f);
  EXPECT_FALSE(std::signbit(DequantizeElement(DataType::kFloat4E2M1, 8, 1, 8)));
  EXPECT_TRUE(std::signbit(DequantizeElement(DataType::kFloat4E2M1, 8, 1, 0)));
  EXPECT_TRUE(std::isnan(DequantizeElement(DataType::kFloat8E4M3Fn, 0x7F, 1, 0)));
  EXPECT_TRUE(std::isnan(DequantizeElement(DataType::kUint8, 0, kInfinity, 0)));
}

TEST(Dequantize, UndoesQuantizeOfEveryCode) {
  for (const DataTypeInfo& info : kDataTypes) {
    if (info.bits > 16 || info.kind == DataTypeKind::kFloat) continue;
    if (info.kind == DataTypeKind::kExponent) continue;
    const ElementRule rule = Rule(info.type);
    for (uint32_t code = 0; code < (1u << info.bits); ++code) {
      const float value = DequantizeElement(info.type, code, 0.25f, 0);
      if (std::isnan(value) || std::isinf(value)) continue;
      ASSERT_EQ(QuantizeElement(rule, value, 0.25f, 0).code, code) << info.name;
    }
  }
}

}  // namespace rules_elements_test
}  // namespace quantd::rules
