// Combines the error reports of pieces into that of the whole tensor.
#ifndef QUANTD_CLIENT_CPP_SPLIT_SUMS_H_
#define QUANTD_CLIENT_CPP_SPLIT_SUMS_H_

#include <cstdint>

#include "quantd/v1/quantization.pb.h"

namespace quantd::client::split {

// The sums behind a report. Means and decibels can't be added, but these can: the mean times the
// number of finite elements is the noise. The order of additions differs from that of one call, so
// a report may differ in the last bits; counts do not.
struct Sums {
  double signal = 0;  // sum x^2
  double noise = 0;   // sum (x - x^)^2
  double max_absolute_error = 0;
  int64_t finite = 0;
  uint64_t saturated = 0;
  uint64_t non_finite = 0;

  // Adds a piece: its report, and data about its elements that the report does not contain.
  void Add(const v1::QuantizationError& report, double piece_signal, int64_t piece_finite);
  void Add(const Sums& other);
  v1::QuantizationError Finish() const;
};

}  // namespace quantd::client::split

#endif  // QUANTD_CLIENT_CPP_SPLIT_SUMS_H_
