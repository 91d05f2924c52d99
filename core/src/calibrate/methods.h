// Computes the range of a channel from its counts, with one function per method, and the scale and
// zero point of a range. The formulas are those of core/CALIBRATION.md, in double and in the same
// order.
#ifndef QUANTD_SRC_CALIBRATE_METHODS_H_
#define QUANTD_SRC_CALIBRATE_METHODS_H_

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "calibrate/channels.h"
#include "pool/watch.h"
#include "quantd/data_type.h"

namespace quantd::calibrate {

struct Range {
  float low = 0;
  float high = 0;
};

struct Scale {
  float scale = 1;
  int32_t zero_point = 0;
};

// For one output type. Integers: like onnxruntime.quantization.quant_utils.compute_scale_zp;
// FLOAT8, FLOAT6 and FLOAT4: from their largest number.
class Scaling {
 public:
  Scaling(DataType output_type, bool symmetric);

  bool symmetric() const { return symmetric_; }
  // Integers: the bounds of codes. Symmetric INT8: [-127, 127], INT16: [-32767, 32767].
  int32_t minimum() const { return minimum_; }
  int32_t maximum() const { return maximum_; }
  int bits() const { return bits_; }
  // A range with steps smaller than 2^-126 gets scale 1 and zero point 0.
  Scale Of(const Range& range) const;

 private:
  bool symmetric_;
  bool integer_;
  int bits_;
  int32_t minimum_ = 0;
  int32_t maximum_ = 0;
  double largest_ = 0;  // FLOAT8, FLOAT6 and FLOAT4
};

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

}  // namespace quantd::calibrate

#endif  // QUANTD_SRC_CALIBRATE_METHODS_H_
