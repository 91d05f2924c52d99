#include "calibrate/channels.h"

#include <algorithm>
#include <cmath>

namespace quantd::calibrate {

Channels::Channels(size_t size, bool has_bins)
    : finite(size, 0),
      non_finite(size, 0),
      low(size, INFINITY),
      high(size, -INFINITY),
      has_bins_(has_bins),
      bins_(has_bins ? size : 0) {}

Bins& Channels::BinsOf(size_t channel) {
  std::unique_ptr<Bins>& bins = bins_[channel];
  if (bins == nullptr) bins = std::make_unique<Bins>();
  return *bins;
}

Bins& Channels::RaiseTop(size_t channel) {
  Bins& bins = BinsOf(channel);
  const float top = std::max(std::fabs(low[channel]), std::fabs(high[channel]));
  // Both are infinite if there was no finite value.
  if (std::isfinite(top)) bins.RaiseTop(rules::Magnitude(top));
  return bins;
}

void Channels::Merge(const Channels& other) {
  for (size_t i = 0; i < size(); ++i) {
    finite[i] += other.finite[i];
    non_finite[i] += other.non_finite[i];
    low[i] = std::min(low[i], other.low[i]);
    high[i] = std::max(high[i], other.high[i]);
    if (!has_bins_) continue;
    if (const Bins* const bins = other.FindBins(i); bins != nullptr) BinsOf(i).Merge(*bins);
  }
}

}  // namespace quantd::calibrate
