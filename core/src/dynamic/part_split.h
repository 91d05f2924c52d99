// Cuts a tensor into parts that the second-level cache holds from their ranges to their codes.
#ifndef QUANTD_SRC_DYNAMIC_PART_SPLIT_H_
#define QUANTD_SRC_DYNAMIC_PART_SPLIT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>

#include "quantd/plan.h"
#include "walk/cursor.h"
#include "walk/part.h"

namespace quantd {

// The parts share no scale, no byte of packed codes and none of packed zero points.
class PartSplit {
 public:
  explicit PartSplit(const DynamicQuantizePlan& plan) : plan_(plan) {
    // NVFP4's second scale needs the range of all.
    if (plan.elements == 0 || plan.has_tensor_scale) return;
    const int64_t alone = ElementsWithoutSharedScales(plan.layout);
    const int64_t scales = plan.layout.dimensions[0].scale_stride;
    const int64_t step = std::lcm(Cursor::kGroup / std::gcd(alone, Cursor::kGroup),
                                  kScaleGroup / std::gcd(scales, kScaleGroup));
    if (alone > kElements / step) return;
    const int64_t count = kElements / (alone * step) * step;
    elements_ = count * alone;
    scales_ = static_cast<size_t>(count * scales);
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

 private:
  // Of a part at most: 256 KiB of FLOAT. Against passes over all, UINT8 in blocks of 32 at 256 MiB
  // 10.5 and 7.1 GB/s on one thread, 19 and 14 on two; at 1 MiB 18 and 18, 35 and 25 (one hand-off,
  // not three). Parts of 64 KiB are slower, of 128 or 512 no faster.
  static constexpr int64_t kElements = 64 * 1024;
  static constexpr int64_t kScaleGroup = 4;  // of 2 bits in a byte

  const DynamicQuantizePlan& plan_;
  size_t parts_ = 1;
  int64_t elements_ = 0;
  size_t scales_ = 0;
};

}  // namespace quantd

#endif  // QUANTD_SRC_DYNAMIC_PART_SPLIT_H_
