// CalibrationMethod::kMse: the threshold with the smallest squared error, assuming uniform bins.
#include <cstdlib>
#include <vector>

#include "calibrate/methods.h"
#include "rules/bins.h"

namespace quantd::calibrate {
namespace {

// Values between a and b.
struct MsePiece {
  double a;
  double b;
  double count;
};

std::vector<MsePiece> MsePiecesOf(const Bins& bins) {
  std::vector<MsePiece> pieces;
  bins.ForEach([&](int id, uint64_t count) {
    if (id == 0) return;
    const int m = std::abs(id);
    const double near = rules::Edge(m);
    const double far = rules::Edge(m + 1);
    pieces.push_back({id < 0 ? -far : near, id < 0 ? -near : far, static_cast<double>(count)});
  });
  return pieces;
}

// The integral of the squared error of rounding and clamping, from 0 to u, in steps of the scale.
// The bounds are whole numbers, so clamping first gives the same; the result is so small that
// adding 1.5 * 2^52, whose last bit is worth 1, rounds it like rint.
double Integral(double u, double lowest, double highest) {
  constexpr double kRounder = 0x1.8p52;
  const double nearest = (std::clamp(u, lowest, highest) + kRounder) - kRounder;
  const double r = u - nearest;
  return nearest / 12 + r * r * r / 3;
}

double LossOf(const std::vector<MsePiece>& pieces, const Scaling& scaling, const Range& range) {
  const Scale found = scaling.Of(range);
  const double s = found.scale;
  const double lowest = scaling.minimum() - found.zero_point;
  const double highest = scaling.maximum() - found.zero_point;
  double sum = 0;
  // Most pieces begin where the previous one ended.
  double end = 0, b = 0, at_b = 0;
  for (const MsePiece& piece : pieces) {
    const bool adjoins = piece.a == end;
    const double a = adjoins ? b : piece.a / s;
    const double at_a = adjoins ? at_b : Integral(a, lowest, highest);
    end = piece.b;
    b = end / s;
    at_b = Integral(b, lowest, highest);
    sum += piece.count * ((at_b - at_a) / (b - a)) * (s * s);
  }
  return sum;
}

}  // namespace

Range MseRange(const ChannelView& seen, const Scaling& scaling, Watch& watch) {
  const bool symmetric = scaling.symmetric();
  if (seen.bins == nullptr) return MinMaxRange(seen, symmetric);
  const std::vector<MsePiece> pieces = MsePiecesOf(*seen.bins);
  const int best = Search(*seen.bins, 16, watch, [&](int c) {
    return LossOf(pieces, scaling, RangeOf(rules::Edge(c + 1), seen, symmetric));
  });
  if (best < 0) return MinMaxRange(seen, symmetric);
  return RangeOf(rules::Edge(best + 1), seen, symmetric);
}

}  // namespace quantd::calibrate
