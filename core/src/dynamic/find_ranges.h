// The first pass of DynamicQuantize: the range of the elements of each scale.
#ifndef QUANTD_SRC_DYNAMIC_FIND_RANGES_H_
#define QUANTD_SRC_DYNAMIC_FIND_RANGES_H_

#include "absl/status/status.h"
#include "pool/tasks.h"
#include "quantd/executor.h"
#include "quantd/plan.h"

namespace quantd {

// Widens min[k] and max[k] (layout.scale_count entries, all 0 at first) by the finite elements of
// scale k, for the elements of a part. INVALID_ARGUMENT (field "x") naming the first element that
// is NaN or infinite, when the plan rejects them; CANCELLED when interrupted. REQUIRES: the tensor
// is not empty.
absl::Status FindRanges(const DynamicQuantizePlan& plan, const ByteChunks& x, const Part& part,
                        Workers workers, Interrupted interrupted, float* min, float* max);

// Parts that begin at multiples of this many elements share no scale. The number of all elements,
// when there is no smaller one. REQUIRES: the tensor is not empty.
int64_t ElementsWithoutSharedScales(const BlockLayout& layout);

}  // namespace quantd

#endif  // QUANTD_SRC_DYNAMIC_FIND_RANGES_H_
