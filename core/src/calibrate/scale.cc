#include "calibrate/scale.h"

#include <algorithm>
#include <cfloat>
#include <cmath>

namespace quantd::calibrate {

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

}  // namespace quantd::calibrate
