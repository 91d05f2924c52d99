// How far a quantized tensor is from what it was made of.
#ifndef QUANTD_QUANTIZATION_ERROR_H_
#define QUANTD_QUANTIZATION_ERROR_H_

#include <cstdint>

namespace quantd {

// Over the finite elements of x, with x^ = Dequantize(y) in double. A tensor without finite
// elements has errors 0 and sqnr_db +Infinity. Where a FLOAT8 without saturation overflows, x^ is
// NaN or infinite, and with it the errors.
struct QuantizationError {
  double sqnr_db = 0;                // 10 log10(sum x^2 / sum (x - x^)^2); +Infinity when exact
  double mean_squared_error = 0;     // mean((x - x^)^2)
  double max_absolute_error = 0;     // max |x - x^|
  uint64_t saturated_elements = 0;   // value before the clamp outside the output's range; NaN never
  uint64_t non_finite_elements = 0;  // NaN and infinities in x
};

// The sums from which a QuantizationError is made. Parts of a tensor are summed apart and added.
struct ErrorSums {
  double signal = 0;  // sum x^2
  double noise = 0;   // sum (x - x^)^2
  double max_absolute_error = 0;
  uint64_t finite_elements = 0;
  uint64_t saturated_elements = 0;
  uint64_t non_finite_elements = 0;

  void Add(const ErrorSums& other);
  QuantizationError Finish() const;
};

}  // namespace quantd

#endif  // QUANTD_QUANTIZATION_ERROR_H_
