// Quantize and Dequantize for one element at a time, written directly from the rules.
//
//   ElementRule rule{.output_type = DataType::kUint8, .minimum = 0, .maximum = 255};
//   QuantizeElement(rule, /*x=*/5.0f, /*scale=*/2.0f, /*zero_point=*/1.0f).code == 3
//
// The fast kernels are tested against this file bit for bit, and CPUs without a fast kernel run it.
// The sign and payload of a NaN from Dequantize are unspecified; it is quiet.
#ifndef QUANTD_SRC_RULES_ELEMENTS_H_
#define QUANTD_SRC_RULES_ELEMENTS_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "quantd/arithmetic.h"
#include "quantd/data_type.h"
#include "types/codes.h"
#include "types/small_float.h"

namespace quantd::rules {

// ---- Quantize -----------------------------------------------------------------------------------

// The same for all elements of one Quantize or DynamicQuantize.
struct ElementRule {
  DataType output_type = DataType::kUint8;
  DataType precision = DataType::kFloat;  // x, scale and quotient are rounded to it
  ZeroPointOrder zero_point_order = ZeroPointOrder::kAfterRounding;
  bool saturate = true;         // FLOAT8
  bool has_zero_point = false;  // mini floats
  int32_t minimum = 0;          // integers
  int32_t maximum = 255;
  bool multiplies = false;  // x * scale, in FLOAT, instead of x / scale
};

struct QuantizedElement {
  uint32_t code = 0;
  bool saturated = false;  // the value before the clamp is outside the output's range; never NaN
};

// REQUIRES: value is whole, infinite or NaN.
inline QuantizedElement ClampToInteger(const ElementRule& rule, double value) {
  const uint32_t mask =
      Info(rule.output_type).bits == 32 ? ~0u : (1u << Info(rule.output_type).bits) - 1;
  const auto code = [mask](int32_t integer) { return static_cast<uint32_t>(integer) & mask; };
  if (std::isnan(value)) return {code(rule.minimum), false};
  if (value < rule.minimum) return {code(rule.minimum), true};
  if (value > rule.maximum) return {code(rule.maximum), true};
  return {code(static_cast<int32_t>(value)), false};
}

// x is FLOAT (INT32 is converted to it), scale and zero_point are FLOAT; zero_point is 0 if there
// is none.
inline QuantizedElement QuantizeElement(const ElementRule& rule, float x, float scale,
                                        float zero_point) {
  const DataTypeKind kind = Info(rule.output_type).kind;
  if (kind == DataTypeKind::kInteger && rule.zero_point_order == ZeroPointOrder::kBeforeRounding) {
    const float quotient =
        RoundTo(rule.precision, RoundTo(rule.precision, x) / RoundTo(rule.precision, scale));
    const float sum = RoundTo(rule.precision, quotient + zero_point);
    return ClampToInteger(rule, std::nearbyint(sum));
  }
  const float quotient =
      rule.multiplies
          ? x * scale
          : RoundTo(rule.precision, RoundTo(rule.precision, x) / RoundTo(rule.precision, scale));
  if (kind == DataTypeKind::kInteger) {
    // Whole numbers in double: exact wherever the clamp does not decide.
    return ClampToInteger(rule, static_cast<double>(std::nearbyint(quotient)) + zero_point);
  }
  float value = quotient;
  if (kind == DataTypeKind::kMiniFloat && rule.has_zero_point) value += zero_point;
  // A NaN gets the sign of x, whatever the sign of the scale.
  if (std::isnan(x)) value = x;
  const FloatFormat& format = FormatOf(rule.output_type);
  return {EncodeFormat(format, value, rule.saturate || kind == DataTypeKind::kMiniFloat),
          Overflows(format, value)};
}

// ---- Dequantize ---------------------------------------------------------------------------------

// A zero point as FLOAT: those of mini floats are codes.
inline float DequantizeZeroPoint(DataType input_type, int32_t zero_point) {
  return Info(input_type).kind == DataTypeKind::kMiniFloat
             ? DecodeFloat(input_type, static_cast<uint32_t>(zero_point))
             : static_cast<float>(zero_point);
}

// (x - zero_point) * scale in FLOAT, for a code of `input_type`.
inline float DequantizeElement(DataType input_type, uint32_t code, float scale,
                               int32_t zero_point) {
  if (input_type == DataType::kInt32) {
    const int64_t difference = DecodeInteger(input_type, code) - int64_t{zero_point};
    return static_cast<float>(difference) * scale;
  }
  return (DecodeFloat(input_type, code) - DequantizeZeroPoint(input_type, zero_point)) * scale;
}

}  // namespace quantd::rules

#endif  // QUANTD_SRC_RULES_ELEMENTS_H_
