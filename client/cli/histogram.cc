#include "histogram.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace quantd::cli {
namespace {

constexpr int kBar = 40;

}  // namespace

Histogram::Histogram(double low_end, double high_end, int bins)
    : low(low_end), high(high_end), counts(low_end == high_end ? 1 : std::max(bins, 1), 0) {}

void Histogram::Add(double value, uint64_t count) {
  const auto bins = static_cast<double>(counts.size());
  // Halves, so that a range as wide as double allows does not overflow.
  const double position = high == low ? 0 : (value / 2 - low / 2) / (high / 2 - low / 2) * bins;
  counts[static_cast<size_t>(std::clamp(position, 0.0, bins - 1))] += count;
}

std::string Histogram::Text() const {
  const uint64_t most = std::max<uint64_t>(1, *std::max_element(counts.begin(), counts.end()));
  const auto bins = static_cast<double>(counts.size());
  std::string text;
  for (size_t i = 0; i < counts.size(); ++i) {
    const double edge = low + (high / bins - low / bins) * static_cast<double>(i);
    const double share = static_cast<double>(counts[i]) / static_cast<double>(most);
    std::string bar(static_cast<size_t>(std::lround(share * kBar)), '#');
    if (bar.empty() && counts[i] > 0) bar.push_back('.');
    absl::StrAppendFormat(&text, "    %12.5g |%-*s %d\n", edge, kBar, bar, counts[i]);
  }
  absl::StrAppendFormat(&text, "    %12.5g\n", high);
  return text;
}

Json Histogram::ToJson() const {
  return {{"min", NumberJson(low)}, {"max", NumberJson(high)}, {"counts", counts}};
}

void GrowingHistogram::Grow() {
  half_ *= 2;
  std::vector<uint64_t> wider(kBins, 0);
  for (int i = 0; i < kBins; ++i) wider[kBins / 4 + i / 2] += counts_[i];
  counts_ = std::move(wider);
}

void GrowingHistogram::Add(double value) {
  minimum_ = empty_ ? value : std::min(minimum_, value);
  maximum_ = empty_ ? value : std::max(maximum_, value);
  empty_ = false;
  if (value == 0) {
    ++zeros_;
    return;
  }
  if (half_ == 0) half_ = std::exp2(std::ceil(std::log2(std::abs(value))));
  while (std::abs(value) > half_) Grow();
  const double position = (value + half_) / Width();
  ++counts_[static_cast<size_t>(std::clamp(position, 0.0, kBins - 1.0))];
}

Histogram GrowingHistogram::Between(int bins) const {
  Histogram result(minimum_, maximum_, bins);
  if (zeros_ > 0) result.Add(0, zeros_);
  for (int i = 0; i < kBins; ++i) {
    if (counts_[i] == 0) continue;
    const double middle = -half_ + (i + 0.5) * Width();
    result.Add(std::clamp(middle, minimum_, maximum_), counts_[i]);
  }
  return result;
}

}  // namespace quantd::cli
