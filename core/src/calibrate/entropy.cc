// CalibrationMethod::kEntropy: the threshold whose levels preserve most information about
// magnitudes.
#include <vector>

#include "calibrate/methods.h"
#include "rules/bins.h"

namespace quantd::calibrate {
namespace {

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

Range EntropyRange(const ChannelView& seen, const Scaling& scaling, Watch& watch) {
  const bool symmetric = scaling.symmetric();
  if (seen.bins == nullptr) return MinMaxRange(seen, symmetric);
  Divergence divergence(*seen.bins, scaling.bits());
  const int best = Search(*seen.bins, 4, watch, divergence);
  if (best < 0) return MinMaxRange(seen, symmetric);
  return RangeOf(rules::Edge(best + 1), seen, symmetric);
}

}  // namespace quantd::calibrate
