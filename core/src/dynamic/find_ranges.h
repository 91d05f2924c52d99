// The first pass of DynamicQuantize: the range of the elements of each scale.
#ifndef QUANTD_SRC_DYNAMIC_FIND_RANGES_H_
#define QUANTD_SRC_DYNAMIC_FIND_RANGES_H_

#include "absl/status/status.h"
#include "pool/tasks.h"
#include "quantd/executor.h"
#include "quantd/plan.h"
#include "walk/part.h"

namespace quantd {

// Widens min[k] and max[k] (layout.scale_count entries, all 0 at first) by the finite elements of
// scale k, for the elements of a part. INVALID_ARGUMENT (field "x") naming the first element that
// is NaN or infinite, when the plan rejects them; CANCELLED when interrupted. REQUIRES: the tensor
// is not empty.
absl::Status FindRanges(const DynamicQuantizePlan& plan, const ByteChunks& x, const Part& part,
                        Workers workers, Interrupted interrupted, float* min, float* max);

}  // namespace quantd

#endif  // QUANTD_SRC_DYNAMIC_FIND_RANGES_H_
