#include "elements.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

namespace quantd::client::split {
namespace {

constexpr int64_t kTile = 1024;

// Bits of each type, by number.
constexpr std::array<int, 29> kBits = {
    0,  32, 8, 8, 16, 16, 32, 0, 0, 0,  // -, FLOAT, UINT8, INT8, UINT16, INT16, INT32, -, -, -
    16, 0,  0, 0, 0,  0,                // FLOAT16, -
    16, 8,  8, 8, 8,                    // BFLOAT16, FLOAT8
    4,  4,  4, 8, 2,  2,  6,  6,        // UINT4, INT4, FLOAT4E2M1, FLOAT8E8M0, UINT2, INT2, FLOAT6
};
static_assert(v1::DataType_ARRAYSIZE == kBits.size(), "a new type needs its bits");

template <typename T>
T Load(const std::string& data, int64_t index) {
  T value;
  std::memcpy(&value, data.data() + static_cast<size_t>(index) * sizeof(T), sizeof(T));
  return value;
}

float FromBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

float FromFloat16(uint16_t half) {
  const uint32_t sign = uint32_t{half} >> 15 << 31;
  const int exponent = half >> 10 & 31;
  const uint32_t fraction = half & 1023u;
  if (exponent == 31) return FromBits(sign | 0x7F800000u | fraction << 13);
  if (exponent == 0)
    return std::copysign(std::ldexp(static_cast<float>(fraction), -24), sign != 0 ? -1.0f : 1.0f);
  return FromBits(sign | static_cast<uint32_t>(exponent + 112) << 23 | fraction << 13);
}

// REQUIRES: the code is not NaN.
float FromFloat8E4M3Fn(uint8_t code) {
  const int exponent = code >> 3 & 15, fraction = code & 7;
  const float magnitude = exponent == 0
                              ? std::ldexp(static_cast<float>(fraction), -9)
                              : std::ldexp(static_cast<float>(8 + fraction), exponent - 10);
  return (code & 128) != 0 ? -magnitude : magnitude;
}

bool IsFinite(float value) { return std::fabs(value) <= std::numeric_limits<float>::max(); }

// Adds a tile whose elements are all finite, like almost every tile. Compilers vectorise these
// loops, whose sums do not wait for each other.
bool AddFiniteTile(const float* values, int64_t count, float* minimum, float* maximum,
                   double* signal) {
  std::array<float, 8> low{}, high{};
  std::array<double, 8> squares{};
  int bad = 0;
  const auto add = [&](int64_t i, size_t lane) {
    const float value = values[i];
    low[lane] = value < low[lane] ? value : low[lane];
    high[lane] = value > high[lane] ? value : high[lane];
    squares[lane] += static_cast<double>(value) * value;
    bad |= !IsFinite(value);
  };
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    for (size_t lane = 0; lane < 8; ++lane) add(i + static_cast<int64_t>(lane), lane);
  }
  for (; i < count; ++i) add(i, 0);
  if (bad != 0) return false;
  *minimum = *std::min_element(low.begin(), low.end());
  *maximum = *std::max_element(high.begin(), high.end());
  for (const double square : squares) *signal += square;
  return true;
}

}  // namespace

int BitsOf(v1::DataType type) {
  const auto number = static_cast<size_t>(type);
  return number < kBits.size() ? kBits[number] : 0;
}

bool IsInputType(v1::DataType type) {
  return type == v1::DATA_TYPE_FLOAT || type == v1::DATA_TYPE_FLOAT16 ||
         type == v1::DATA_TYPE_BFLOAT16 || type == v1::DATA_TYPE_INT32;
}

float ValueAt(v1::DataType type, const std::string& data, int64_t index) {
  switch (type) {
    case v1::DATA_TYPE_FLOAT:
      return Load<float>(data, index);
    case v1::DATA_TYPE_FLOAT16:
      return FromFloat16(Load<uint16_t>(data, index));
    case v1::DATA_TYPE_BFLOAT16:
      return FromBits(uint32_t{Load<uint16_t>(data, index)} << 16);
    case v1::DATA_TYPE_INT32:
      return static_cast<float>(Load<int32_t>(data, index));
    case v1::DATA_TYPE_FLOAT8E8M0:
      return std::ldexp(1.0f, Load<uint8_t>(data, index) - 127);
    case v1::DATA_TYPE_FLOAT8E4M3FN:
      return FromFloat8E4M3Fn(Load<uint8_t>(data, index));
    default:
      std::abort();  // required not to be
  }
}

double ExactValueAt(v1::DataType type, const std::string& data, int64_t index) {
  if (type == v1::DATA_TYPE_INT32) return Load<int32_t>(data, index);
  return ValueAt(type, data, index);
}

Scan ScanElements(v1::DataType type, const std::string& data, int64_t begin, int64_t count) {
  Scan scan;
  const auto include = [&scan](float minimum, float maximum) {
    scan.minimum = std::min(scan.minimum, minimum);
    scan.maximum = std::max(scan.maximum, maximum);
  };
  std::array<float, kTile> values;
  for (int64_t tile = begin; tile < begin + count; tile += kTile) {
    const int64_t size = std::min(kTile, begin + count - tile);
    for (int64_t i = 0; i < size; ++i)
      values[static_cast<size_t>(i)] = ValueAt(type, data, tile + i);
    float minimum = 0, maximum = 0;
    if (AddFiniteTile(values.data(), size, &minimum, &maximum, &scan.signal)) {
      scan.finite += size;
      include(minimum, maximum);
      continue;
    }
    for (int64_t i = 0; i < size; ++i) {
      const float value = values[static_cast<size_t>(i)];
      if (!IsFinite(value)) {
        if (scan.first_non_finite < 0) scan.first_non_finite = tile + i;
        continue;
      }
      include(value, value);
      scan.signal += static_cast<double>(value) * value;
      ++scan.finite;
    }
  }
  if (type != v1::DATA_TYPE_INT32) return scan;
  scan.signal = 0;
  for (int64_t i = begin; i < begin + count; ++i) {
    const double value = ExactValueAt(type, data, i);
    scan.signal += value * value;
  }
  return scan;
}

void WidenRange(v1::DataType type, const std::string& data, int64_t begin, int64_t count,
                float& minimum, float& maximum) {
  if (count >= kTile) {
    const Scan scan = ScanElements(type, data, begin, count);
    minimum = std::min(minimum, scan.minimum);
    maximum = std::max(maximum, scan.maximum);
    return;
  }
  for (int64_t i = begin; i < begin + count; ++i) {
    const float value = ValueAt(type, data, i);
    if (!IsFinite(value)) continue;
    minimum = std::min(minimum, value);
    maximum = std::max(maximum, value);
  }
}

}  // namespace quantd::client::split
