// CalibrationMethod::kPercentile.
#include <cstdlib>

#include "calibrate/methods.h"
#include "rules/bins.h"

namespace quantd::calibrate {
namespace {

using rules::Edge;

// The edge of the bin away from -Inf, and the one towards it.
double UpperEdge(int id, int floor) {
  if (id == 0) return Edge(floor + 1);
  return id > 0 ? Edge(id + 1) : -Edge(-id);
}
double LowerEdge(int id, int floor) { return -UpperEdge(-id, floor); }

// The bin of the value that has `drop` others before it, from the largest down: of magnitudes (then
// its id is not negative), or of values.
template <typename CountOf>
int BinAfter(const Bins& bins, int last, double drop, CountOf&& count_of) {
  double seen = 0;
  for (int id = bins.top(); id > last; --id) {
    const int m = std::abs(id);
    if (id != 0 && m <= bins.floor()) continue;
    seen += static_cast<double>(count_of(id));
    if (seen > drop) return id;
  }
  return last;
}

}  // namespace

Range PercentileRange(const ChannelView& seen, double percentile, bool symmetric) {
  if (seen.bins == nullptr || seen.finite == 0) return {};
  const Bins& bins = *seen.bins;
  const auto n = static_cast<double>(seen.finite);
  if (symmetric) {
    const double drop = std::floor(n * (100 - percentile) / 100);
    const int bin = BinAfter(bins, 0, drop, [&](int m) { return bins.count(m) + bins.count(-m); });
    return RangeOf(UpperEdge(bin, bins.floor()), seen, true);
  }
  const double drop = std::floor(n * (100 - percentile) / 200);
  const int highest = BinAfter(bins, -bins.top(), drop, [&](int id) { return bins.count(id); });
  const int lowest = -BinAfter(bins, -bins.top(), drop, [&](int id) { return bins.count(-id); });
  return {static_cast<float>(std::max<double>(LowerEdge(lowest, bins.floor()), seen.low)),
          static_cast<float>(std::min<double>(UpperEdge(highest, bins.floor()), seen.high))};
}

}  // namespace quantd::calibrate
