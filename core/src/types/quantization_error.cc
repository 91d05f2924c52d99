#include "quantd/quantization_error.h"

#include <cmath>
#include <limits>

namespace quantd {

void ErrorSums::Add(const ErrorSums& other) {
  signal += other.signal;
  noise += other.noise;
  // Unlike std::max, keeps a NaN on either side.
  if (!(other.max_absolute_error <= max_absolute_error)) {
    max_absolute_error =
        std::isnan(max_absolute_error) ? max_absolute_error : other.max_absolute_error;
  }
  finite_elements += other.finite_elements;
  saturated_elements += other.saturated_elements;
  non_finite_elements += other.non_finite_elements;
}

QuantizationError ErrorSums::Finish() const {
  QuantizationError error;
  error.sqnr_db =
      noise == 0 ? std::numeric_limits<double>::infinity() : 10 * std::log10(signal / noise);
  if (finite_elements > 0) {
    error.mean_squared_error = noise / static_cast<double>(finite_elements);
  }
  error.max_absolute_error = max_absolute_error;
  error.saturated_elements = saturated_elements;
  error.non_finite_elements = non_finite_elements;
  return error;
}

}  // namespace quantd
