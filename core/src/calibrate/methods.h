// Computes the range of a channel from its counts, with one function per method. The formulas are
// those of core/CALIBRATION.md, in double and in the same order.
#ifndef QUANTD_SRC_CALIBRATE_METHODS_H_
#define QUANTD_SRC_CALIBRATE_METHODS_H_

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "calibrate/bin_counts.h"
#include "calibrate/scale.h"
#include "pool/watch.h"

namespace quantd::calibrate {

// The values seen in a channel.
struct ChannelView {
  uint64_t finite = 0;
  float low = 0;  // exact; both 0 without values
  float high = 0;
  const Bins* bins = nullptr;  // null: none

  float top() const { return std::max(std::fabs(low), std::fabs(high)); }
};

// The range for a threshold. The threshold is first limited to the largest magnitude, which is a
// FLOAT, as is every edge below it.
inline Range RangeOf(double threshold, const ChannelView& seen, bool symmetric) {
  const auto t = static_cast<float>(std::min<double>(threshold, seen.top()));
  if (symmetric) return {0.0f - t, t};
  return {std::clamp(seen.low, 0.0f - t, t), std::clamp(seen.high, 0.0f - t, t)};
}

inline Range MinMaxRange(const ChannelView& seen, bool symmetric) {
  return RangeOf(seen.top(), seen, symmetric);
}

// The range without the outermost values, at most (100 - percentile) %.
Range PercentileRange(const ChannelView& seen, double percentile, bool symmetric);

// The range with the smallest mean squared error, or the smallest loss of information. The result
// is meaningless if `watch` was stopped. REQUIRES: an integer type.
Range MseRange(const ChannelView& seen, const Scaling& rule, Watch& watch);
Range EntropyRange(const ChannelView& seen, const Scaling& rule, Watch& watch);

// The search of both methods: calls loss(c) for the threshold Edge(c + 1), first for every eighth
// bin of `octaves` octaves from the top down, then for those around the best one; of equal losses
// the largest threshold wins. Returns the best c, or -1 if there was no candidate.
template <typename Loss>
int Search(const Bins& bins, int octaves, Watch& watch, Loss&& loss) {
  constexpr int kBinsPerOctave = 128;
  constexpr int kStep = 8;
  const int floor = bins.floor();
  int best = -1;
  double least = 0;
  const auto look = [&](int from, int end, int step) {
    for (int c = from; c > end && !watch.Stopped(); c -= step) {
      const double found = loss(c);
      if (best >= 0 && !(found < least)) continue;
      best = c;
      least = found;
    }
  };
  look(bins.top(), std::max(floor, bins.top() - octaves * kBinsPerOctave), kStep);
  if (best < 0) return best;
  const int around = best;
  best = -1;
  look(std::min(bins.top(), around + kStep - 1), std::max(floor, around - kStep), 1);
  return best;
}

}  // namespace quantd::calibrate

#endif  // QUANTD_SRC_CALIBRATE_METHODS_H_
