// The first pass of DynamicQuantize: the range of the elements of each scale.
#ifndef QUANTD_SRC_EXECUTE_RANGES_H_
#define QUANTD_SRC_EXECUTE_RANGES_H_

#include "absl/status/status.h"
#include "quantd/executor.h"
#include "quantd/plan.h"

namespace quantd {

// Widens min[k] and max[k] (layout.scale_count entries, all 0 at first) by the finite elements of
// scale k. INVALID_ARGUMENT (field "x") naming the first element that is NaN or infinite, when the
// plan rejects them; CANCELLED when interrupted.
// REQUIRES: the tensor is not empty.
absl::Status FindRanges(const DynamicQuantizePlan& plan, const ByteChunks& x,
                        const Executor& executor, Interrupted interrupted, float* min, float* max);

}  // namespace quantd

#endif  // QUANTD_SRC_EXECUTE_RANGES_H_
