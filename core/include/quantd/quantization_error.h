// The error of a quantized tensor compared with the original.
#ifndef QUANTD_QUANTIZATION_ERROR_H_
#define QUANTD_QUANTIZATION_ERROR_H_

#include <cstdint>

namespace quantd {

// Over the finite elements of x, with x^ = Dequantize(y) in double. A tensor without finite
// elements has errors of 0 and sqnr_db +Infinity. Where a FLOAT8 without saturation overflows, x^
// is NaN or infinite, and so are the errors.
struct QuantizationError {
  double sqnr_db = 0;                // 10 log10(sum x^2 / sum (x - x^)^2); +Infinity when exact
  double mean_squared_error = 0;     // mean((x - x^)^2)
  double max_absolute_error = 0;     // max |x - x^|
  uint64_t saturated_elements = 0;   // value before the clamp outside the output's range; never NaN
  uint64_t non_finite_elements = 0;  // NaN and infinities in x
};

// Sums for a QuantizationError. Parts of a tensor are summed separately and then added.
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
