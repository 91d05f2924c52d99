// The first pass of DynamicQuantize: the range of the elements of each scale.
#ifndef QUANTD_SRC_DYNAMIC_FIND_RANGES_H_
#define QUANTD_SRC_DYNAMIC_FIND_RANGES_H_

#include "absl/status/status.h"
#include "pool/tasks.h"
#include "quantd/executor.h"
#include "quantd/plan.h"
#include "walk/part.h"

namespace quantd {

// Widens min[k] and max[k] (all 0 at first) by the finite elements of the part's scale k. Blocks
// are those of `layout`, not of the plan. INVALID_ARGUMENT (field "x"): the first NaN or
// infinite element, if the plan rejects them; CANCELLED: interrupted. REQUIRES: the tensor is
// not empty.
absl::Status FindRanges(const DynamicQuantizePlan& plan, const BlockLayout& layout,
                        absl::Span<const uint8_t> x, const Part& part, Workers workers,
                        Interrupted interrupted, float* min, float* max);

// The most bytes of ranges that its tasks keep for themselves, in addition to min and max.
uint64_t MostOwnRanges(const DynamicQuantizePlan& plan);

}  // namespace quantd

#endif  // QUANTD_SRC_DYNAMIC_FIND_RANGES_H_
