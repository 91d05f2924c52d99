#include "calibrate/methods.h"

#include <cfloat>
#include <cstdlib>
#include <vector>

#include "rules/bins.h"

namespace quantd::calibrate {
namespace {

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

// ---- Percentile ---------------------------------------------------------------------------------

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

// ---- Mean squared error, assuming uniform bins --------------------------------------------------

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

// ---- Entropy: the threshold whose levels preserve most information about magnitudes -------------

// The natural logarithm from basic arithmetic only, so that it is the same on every machine.
double Log(double x) {
  int k;
  double f = std::frexp(x, &k);
  if (f < 0.70710678118654752) {
    f *= 2;
    --k;
  }
  const double u = (f - 1) / (f + 1);
  const double v = u * u;
  double sum = 1.0 / 23;
  for (int i = 21; i >= 1; i -= 2) sum = sum * v + 1.0 / i;
  return k * 0.6931471805599453 + 2 * (u * sum);
}

// Magnitudes of one bin.
struct EntropyPiece {
  int m;
  double width;
  double middle;
  double count;
};

std::vector<EntropyPiece> EntropyPiecesOf(const Bins& bins) {
  std::vector<EntropyPiece> pieces;
  for (int m = bins.floor() + 1; m <= bins.top(); ++m) {
    const uint64_t count = bins.count(m) + bins.count(-m);
    if (count == 0) continue;
    const double edge = rules::Edge(m);
    const double width = rules::Edge(m + 1) - edge;
    pieces.push_back({m, width, edge + width / 2, static_cast<double>(count)});
  }
  return pieces;
}

class Divergence {
 public:
  Divergence(const Bins& bins, int bits)
      : pieces_(EntropyPiecesOf(bins)), levels_(1 << (bits - 1)) {
    for (const EntropyPiece& piece : pieces_) total_ += piece.count;
  }

  // The loss if magnitudes above bin c count as bin c, and those within a level as uniform.
  double operator()(int c) {
    size_t size = 0;
    while (size < pieces_.size() && pieces_[size].m <= c) ++size;
    if (size == 0) return INFINITY;
    double above = 0;
    for (size_t i = size; i < pieces_.size(); ++i) above += pieces_[i].count;

    const double end = rules::Edge(c + 1);
    const auto level_of = [&](const EntropyPiece& piece) {
      return std::min<double>(levels_ - 1, std::floor(piece.middle * levels_ / end));
    };
    double loss = 0;
    for (size_t begin = 0; begin < size;) {
      const double level = level_of(pieces_[begin]);
      double count = 0;
      double width = 0;
      size_t next = begin;
      for (; next < size && level_of(pieces_[next]) == level; ++next) {
        count += pieces_[next].count;
        width += pieces_[next].width;
      }
      for (size_t i = begin; i < next; ++i) {
        const EntropyPiece& piece = pieces_[i];
        const double p = (i + 1 == size ? piece.count + above : piece.count) / total_;
        const double q = ((count / width) * piece.width) / (total_ - above);
        loss += p * Log(p / q);
      }
      begin = next;
    }
    return loss;
  }

 private:
  const std::vector<EntropyPiece> pieces_;
  const double levels_;
  double total_ = 0;
};

}  // namespace

Scaling::Scaling(DataType output_type, bool symmetric)
    : symmetric_(symmetric),
      integer_(Info(output_type).kind == DataTypeKind::kInteger),
      bits_(Info(output_type).bits),
      minimum_(static_cast<int32_t>(Info(output_type).minimum)),
      maximum_(static_cast<int32_t>(Info(output_type).maximum)),
      largest_(Info(output_type).largest) {
  const bool balanced = output_type == DataType::kInt8 || output_type == DataType::kInt16;
  if (symmetric && balanced) minimum_ = -maximum_;
}

Scale Scaling::Of(const Range& range) const {
  double low = std::min<double>(range.low, 0);
  double high = std::max<double>(range.high, 0);
  if (symmetric_) {
    high = std::max(-low, high);
    low = -high;
  }
  const double scale =
      integer_ ? (high - low) / (static_cast<double>(maximum_) - minimum_) : high / largest_;
  // If x is in shared memory and changes while it is read, a range may have any values.
  if (!(scale >= 0x1p-126 && scale <= FLT_MAX)) return {};
  if (!integer_) return {static_cast<float>(scale), 0};
  const double zero_point =
      symmetric_ ? (static_cast<double>(minimum_) + maximum_) / 2 : minimum_ - low / scale;
  return {static_cast<float>(scale), static_cast<int32_t>(std::nearbyint(zero_point))};
}

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

Range EntropyRange(const ChannelView& seen, const Scaling& scaling, Watch& watch) {
  const bool symmetric = scaling.symmetric();
  if (seen.bins == nullptr) return MinMaxRange(seen, symmetric);
  Divergence divergence(*seen.bins, scaling.bits());
  const int best = Search(*seen.bins, 4, watch, divergence);
  if (best < 0) return MinMaxRange(seen, symmetric);
  return RangeOf(rules::Edge(best + 1), seen, symmetric);
}

}  // namespace quantd::calibrate
