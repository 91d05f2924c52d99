#include "smallest_int8.h"

#include <algorithm>
#include <cmath>

#include "scan.h"

namespace quantd::cli {
namespace {

constexpr char kSmallest = -128, kRaised = -127;

}  // namespace

bool HasSmallestInt8(absl::string_view y) { return y.find(kSmallest) != absl::string_view::npos; }

void RaiseSmallestInt8(absl::Span<const float> values, const Box& box, const BlockGrid& grid,
                       absl::Span<const float> scales, absl::Span<const float> zero_points,
                       std::string* y, QuantizationError* error) {
  const auto finite = static_cast<double>(
      std::count_if(values.begin(), values.end(), [](float x) { return std::isfinite(x); }));
  ForEachBlockRun(box, grid, [&](int64_t first, int64_t count, int64_t block) {
    const double scale = scales[block], zero_point = zero_points[block];
    for (int64_t i = first; i < first + count; ++i) {
      if ((*y)[i] != kSmallest) continue;
      (*y)[i] = kRaised;
      const float x = values[i];
      // The value before the clamp was in the range of Quantize and is not in this one; what lay
      // below both is counted already.
      const float value = std::rint(x / static_cast<float>(scale)) + static_cast<float>(zero_point);
      if (value == kSmallest) ++error->saturated_elements;
      if (!std::isfinite(x)) continue;
      const double before = x - (kSmallest - zero_point) * scale;
      const double after = x - (kRaised - zero_point) * scale;
      error->mean_squared_error += (after * after - before * before) / finite;
      error->max_absolute_error = std::max(error->max_absolute_error, std::abs(after));
    }
  });
}

}  // namespace quantd::cli
