// Histograms as text.
#ifndef QUANTD_CLI_HISTOGRAM_H_
#define QUANTD_CLI_HISTOGRAM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "report.h"

namespace quantd::cli {

// Counts over [low, high], in bins of the same width.
struct Histogram {
  double low = 0, high = 0;
  std::vector<uint64_t> counts;

  Histogram(double low_end, double high_end, int bins);
  // REQUIRES: low <= value <= high.
  void Add(double value, uint64_t count = 1);
  // A line a bin: its low end, a bar, its count.
  std::string Text() const;
  Json ToJson() const;
};

// Counts values whose range is not known beforehand: bins around zero that double their width when
// a value falls outside.
class GrowingHistogram {
 public:
  GrowingHistogram() : counts_(kBins, 0) {}
  // REQUIRES: value is finite.
  void Add(double value);
  // What was counted, in `bins` bins from the smallest to the largest value.
  Histogram Between(int bins) const;

 private:
  static constexpr int kBins = 4096;
  double Width() const { return 2 * half_ / kBins; }
  void Grow();

  double half_ = 0;  // counts cover [-half_, half_]
  double minimum_ = 0, maximum_ = 0;
  bool empty_ = true;
  uint64_t zeros_ = 0;
  std::vector<uint64_t> counts_;
};

}  // namespace quantd::cli

#endif  // QUANTD_CLI_HISTOGRAM_H_
