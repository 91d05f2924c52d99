// Cuts a tensor into parts that stay in the second-level cache from the ranges to the codes, or
// parts whose scales take little memory.
#ifndef QUANTD_SRC_DYNAMIC_PART_SPLIT_H_
#define QUANTD_SRC_DYNAMIC_PART_SPLIT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>

#include "linear/windows.h"
#include "quantd/plan.h"
#include "walk/part.h"

namespace quantd {

// Parts share no scale, no byte of packed codes and no byte of packed zero points.
class PartSplit {
 public:
  explicit PartSplit(const DynamicQuantizePlan& plan) : plan_(plan) {
    if (plan.elements == 0) return;
    const int64_t scale_count = plan.layout.scale_count;
    // NVFP4's second scale needs the range of the whole tensor, which is found together with the
    // other ranges if they are few.
    if (plan.has_tensor_scale && scale_count <= kFewScales) return;
    const int64_t alone = ElementsWithoutSharedScales(plan.layout);
    const int64_t scales = plan.layout.dimensions[0].scale_stride;
    const int64_t step =
        std::lcm(kGroup / std::gcd(alone, kGroup), kScaleGroup / std::gcd(scales, kScaleGroup));
    if (alone > plan.elements / step) return;
    in_cache_ = alone <= kElements / step;
    if (!in_cache_ && scale_count <= kManyScales) return;
    const int64_t count = in_cache_ ? kElements / (alone * step)
                                    : std::max<int64_t>(kManyScales / (scales * step), 1);
    elements_ = count * step * alone;
    scales_ = static_cast<size_t>(count * step * scales);
    parts_ = static_cast<size_t>((plan.elements - 1) / elements_ + 1);
  }

  size_t parts() const { return parts_; }
  Part all() const { return {0, plan_.elements, 0, static_cast<size_t>(plan_.layout.scale_count)}; }
  // REQUIRES: parts() > 1.
  Part part(size_t index) const {
    const int64_t begin = static_cast<int64_t>(index) * elements_;
    const size_t first = index * scales_;
    return {begin, std::min(begin + elements_, plan_.elements), first,
            std::min(scales_, all().scales - first)};
  }
  // Whether a part fits into the cache. If not, parts exist to limit the memory of their scales.
  bool in_cache() const { return in_cache_; }
  // The most scales of a part.
  size_t most_scales() const { return parts_ == 1 ? all().scales : scales_; }

 private:
  // The most elements of a part: 256 KiB of FLOAT. Compared with passes over the whole tensor,
  // UINT8 in blocks of 32 at 256 MiB reaches 10.5 instead of 7.1 GB/s on one thread, 19 instead of
  // 14 on two; at 1 MiB 18 and 18, 35 instead of 25 (one hand-off, not three). Parts of 64 KiB are
  // slower; parts of 128 or 512 KiB gain nothing.
  static constexpr int64_t kElements = 64 * 1024;
  static constexpr int64_t kScaleGroup = 4;  // of 2 bits each, in a byte
  static constexpr int64_t kFewScales = 64 * 1024;
  static constexpr int64_t kManyScales = 4 << 20;  // 32 MiB of ranges

  const DynamicQuantizePlan& plan_;
  size_t parts_ = 1;
  int64_t elements_ = 0;
  size_t scales_ = 0;
  bool in_cache_ = false;
};

}  // namespace quantd

#endif  // QUANTD_SRC_DYNAMIC_PART_SPLIT_H_
