#include "sums.h"

#include <cmath>
#include <limits>

namespace quantd::client::split {

void Sums::Add(const v1::QuantizationError& report, double piece_signal, int64_t piece_finite) {
  Sums piece;
  piece.signal = piece_signal;
  piece.noise = report.mean_squared_error() * static_cast<double>(piece_finite);
  piece.max_absolute_error = report.max_absolute_error();
  piece.finite = piece_finite;
  piece.saturated = report.saturated_elements();
  piece.non_finite = report.non_finite_elements();
  Add(piece);
}

void Sums::Add(const Sums& other) {
  signal += other.signal;
  noise += other.noise;
  // Unlike std::max, keeps a NaN on either side.
  if (!(other.max_absolute_error <= max_absolute_error) && !std::isnan(max_absolute_error)) {
    max_absolute_error = other.max_absolute_error;
  }
  finite += other.finite;
  saturated += other.saturated;
  non_finite += other.non_finite;
}

v1::QuantizationError Sums::Finish() const {
  v1::QuantizationError report;
  report.set_sqnr_db(noise == 0 ? std::numeric_limits<double>::infinity()
                                : 10 * std::log10(signal / noise));
  report.set_mean_squared_error(finite > 0 ? noise / static_cast<double>(finite) : 0);
  report.set_max_absolute_error(max_absolute_error);
  report.set_saturated_elements(saturated);
  report.set_non_finite_elements(non_finite);
  return report;
}

}  // namespace quantd::client::split
