// What execution keeps beside the answer.
#ifndef QUANTD_SERVER_OPERATIONS_SCRATCH_H_
#define QUANTD_SERVER_OPERATIONS_SCRATCH_H_

#include <cstdint>

namespace quantd::operations {

// For each scale: its range, the scale as a float, its reciprocal in two parts, the zero point; and
// the tasks' own ranges.
constexpr uint64_t ScratchBytes(uint64_t scales) { return 32 * scales + (64 << 10); }

}  // namespace quantd::operations

#endif  // QUANTD_SERVER_OPERATIONS_SCRATCH_H_
