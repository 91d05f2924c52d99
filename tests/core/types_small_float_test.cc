// The small floating-point formats against a brute-force oracle: among all values of the format the
// nearest one; of two equally near ones, the one with the even code.
#include <cmath>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "types/small_float.h"

namespace quantd {
namespace types_small_float_test {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

const DataType kSmallTypes[] = {
    DataType::kFloat16,        DataType::kBfloat16,   DataType::kFloat8E4M3Fn,
    DataType::kFloat8E4M3Fnuz, DataType::kFloat8E5M2, DataType::kFloat8E5M2Fnuz,
    DataType::kFloat6E2M3,     DataType::kFloat6E3M2, DataType::kFloat4E2M1};

// Finite values >= 0 by magnitude, and one more, as if the exponent had no end: a value nearer to
// that one is too large. Values come from the definition sign * 2^e * (1 + m / 2^M), not from
// DecodeFormat.
std::vector<double> Magnitudes(const FloatFormat& format) {
  std::vector<double> values;
  const int mantissas = 1 << format.mantissa_bits;
  for (int exponent = 0; values.size() < format.largest + 2; ++exponent) {
    for (int mantissa = 0; mantissa < mantissas; ++mantissa) {
      const double fraction = static_cast<double>(mantissa) / mantissas;
      values.push_back(exponent == 0 ? std::pow(2.0, 1 - format.bias) * fraction
                                     : std::pow(2.0, exponent - format.bias) * (1 + fraction));
    }
  }
  values.resize(format.largest + 2);
  return values;
}

// The magnitude that `value` >= 0 rounds to.
uint32_t Nearest(const std::vector<double>& magnitudes, double value) {
  const auto above = std::lower_bound(magnitudes.begin(), magnitudes.end(), value);
  if (above == magnitudes.end()) return static_cast<uint32_t>(magnitudes.size() - 1);
  const uint32_t high = static_cast<uint32_t>(above - magnitudes.begin());
  if (high == 0) return 0;
  const double to_high = magnitudes[high] - value;
  const double to_low = value - magnitudes[high - 1];
  if (to_low != to_high) return to_low < to_high ? high - 1 : high;
  return high % 2 == 0 ? high : high - 1;
}

uint32_t Expected(const FloatFormat& format, const std::vector<double>& magnitudes, float value,
                  bool saturate) {
  const uint32_t sign = std::signbit(value) ? 1u << (format.bits - 1) : 0;
  uint32_t magnitude = Nearest(magnitudes, std::fabs(static_cast<double>(value)));
  if (magnitude > format.largest) {
    if (!saturate) return format.signed_specials ? format.overflow | sign : format.overflow;
    magnitude = format.largest;
  }
  return magnitude == 0 && !format.signed_specials ? 0 : magnitude | sign;
}

void ExpectEncoded(DataType type, const std::vector<double>& magnitudes, float value) {
  const FloatFormat& format = FormatOf(type);
  for (bool saturate : {true, false}) {
    for (float one : {value, -value}) {
      ASSERT_EQ(EncodeFormat(format, one, saturate), Expected(format, magnitudes, one, saturate))
          << Name(type) << " of " << one << (saturate ? ", saturated" : "");
    }
    ASSERT_EQ(Overflows(format, value),
              Nearest(magnitudes, std::fabs(static_cast<double>(value))) > format.largest)
        << Name(type) << " of " << value;
  }
}

TEST(SmallFloat, DecodesEveryCode) {
  for (DataType type : kSmallTypes) {
    const FloatFormat& format = FormatOf(type);
    const std::vector<double> magnitudes = Magnitudes(format);
    const uint32_t sign_bit = 1u << (format.bits - 1);
    EXPECT_EQ(magnitudes[format.largest], Info(type).largest) << Name(type);
    for (uint32_t code = 0; code < sign_bit * 2; ++code) {
      const float value = DecodeFormat(format, code);
      const uint32_t magnitude = code & (sign_bit - 1);
      if (magnitude <= format.largest && (format.signed_specials || code != sign_bit)) {
        ASSERT_EQ(value, code < sign_bit ? magnitudes[magnitude] : -magnitudes[magnitude])
            << Name(type) << " " << code;
        ASSERT_EQ(std::signbit(value), code >= sign_bit) << Name(type) << " " << code;
      } else if (format.overflow_is_inf && magnitude == format.overflow) {
        ASSERT_EQ(value, code < sign_bit ? kInfinity : -kInfinity) << Name(type) << " " << code;
      } else {
        ASSERT_TRUE(std::isnan(value)) << Name(type) << " " << code;
        ASSERT_TRUE(std::signbit(value) == (code >= sign_bit) || !format.signed_specials);
      }
    }
  }
}

TEST(SmallFloat, EveryValueAndEveryTieAndItsNeighbours) {
  for (DataType type : kSmallTypes) {
    const std::vector<double> magnitudes = Magnitudes(FormatOf(type));
    for (size_t i = 0; i + 1 < magnitudes.size(); ++i) {
      const float value = static_cast<float>(magnitudes[i]);
      const float tie = static_cast<float>((magnitudes[i] + magnitudes[i + 1]) / 2);
      for (float center : {value, tie}) {
        ExpectEncoded(type, magnitudes, center);
        ExpectEncoded(type, magnitudes, std::nextafter(center, 0.0f));
        ExpectEncoded(type, magnitudes, std::nextafter(center, kInfinity));
      }
      if (HasFatalFailure()) return;
    }
  }
}

TEST(SmallFloat, RandomBits) {
  const uint32_t seed = std::random_device()();
  RecordProperty("seed", std::to_string(seed));
  std::mt19937 random(seed);
  for (DataType type : kSmallTypes) {
    const std::vector<double> magnitudes = Magnitudes(FormatOf(type));
    for (int i = 0; i < 200000; ++i) {
      const float value = std::bit_cast<float>(static_cast<uint32_t>(random()));
      if (!std::isnan(value)) ExpectEncoded(type, magnitudes, value);
      ASSERT_FALSE(HasFatalFailure()) << "seed " << seed;
    }
  }
}

TEST(SmallFloat, NanAndInfinity) {
  struct Row {
    DataType type;
    uint32_t saturated_infinity, infinity, nan, negative_nan, negative_zero;
  };
  const Row rows[] = {{DataType::kFloat16, 0x7BFF, 0x7C00, 0x7E00, 0xFE00, 0x8000},
                      {DataType::kBfloat16, 0x7F7F, 0x7F80, 0x7FC0, 0xFFC0, 0x8000},
                      {DataType::kFloat8E4M3Fn, 0x7E, 0x7F, 0x7F, 0xFF, 0x80},
                      {DataType::kFloat8E4M3Fnuz, 0x7F, 0x80, 0x80, 0x80, 0x00},
                      {DataType::kFloat8E5M2, 0x7B, 0x7C, 0x7E, 0xFE, 0x80},
                      {DataType::kFloat8E5M2Fnuz, 0x7F, 0x80, 0x80, 0x80, 0x00}};
  for (const Row& row : rows) {
    const FloatFormat& format = FormatOf(row.type);
    EXPECT_EQ(EncodeFormat(format, kInfinity, true), row.saturated_infinity) << Name(row.type);
    EXPECT_EQ(EncodeFormat(format, kInfinity, false), row.infinity) << Name(row.type);
    EXPECT_EQ(EncodeFormat(format, kNan, true), row.nan) << Name(row.type);
    EXPECT_EQ(EncodeFormat(format, -kNan, false), row.negative_nan) << Name(row.type);
    EXPECT_EQ(EncodeFormat(format, -0.0f, false), row.negative_zero) << Name(row.type);
    EXPECT_EQ(EncodeFormat(format, -1e-44f, false), row.negative_zero) << Name(row.type);
  }
  EXPECT_EQ(EncodeFloat8(DataType::kFloat8E4M3Fn, -kInfinity, true), 0xFE);
  EXPECT_EQ(EncodeFloat8(DataType::kFloat8E4M3Fnuz, -kInfinity, true), 0xFF);
  EXPECT_EQ(EncodeFloat8(DataType::kFloat8E5M2, -kInfinity, true), 0xFB);
  EXPECT_EQ(EncodeFloat8(DataType::kFloat8E5M2, -kInfinity, false), 0xFC);
  EXPECT_EQ(EncodeFloat8(DataType::kFloat8E5M2Fnuz, -kInfinity, true), 0xFF);
  for (const DataType type :
       {DataType::kFloat4E2M1, DataType::kFloat6E2M3, DataType::kFloat6E3M2}) {
    const FloatFormat& format = FormatOf(type);
    const uint32_t sign = 1u << (format.bits - 1);
    EXPECT_EQ(EncodeFormat(format, kNan, true), sign) << Name(type);
    EXPECT_EQ(EncodeFormat(format, -kNan, true), 0) << Name(type);
    EXPECT_EQ(EncodeFormat(format, kInfinity, true), sign - 1) << Name(type);
    EXPECT_EQ(EncodeFormat(format, -kInfinity, true), 2 * sign - 1) << Name(type);
  }
}

TEST(SmallFloat, E8M0) {
  for (int code = 0; code < 255; ++code) {
    EXPECT_EQ(static_cast<double>(DecodeE8M0(static_cast<uint8_t>(code))),
              std::pow(2.0, code - 127));
  }
  EXPECT_TRUE(std::isnan(DecodeE8M0(0xFF)));
}

}  // namespace types_small_float_test
}  // namespace quantd
