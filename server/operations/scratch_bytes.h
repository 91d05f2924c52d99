// What execution keeps beside the response.
#ifndef QUANTD_SERVER_OPERATIONS_SCRATCH_BYTES_H_
#define QUANTD_SERVER_OPERATIONS_SCRATCH_BYTES_H_

#include <cstdint>

namespace quantd::operations {

// For each scale: its range, the scale as a float, its reciprocal in two parts, the zero point; and
// the tasks' own ranges.
constexpr uint64_t ScratchBytes(uint64_t scales) { return 32 * scales + (64 << 10); }

// Ranges that tasks of DynamicQuantize keep for themselves, where there are many scales: a quarter
// of x, and 64 MiB at most. Beside an x that came in a message that is not worth counting.
constexpr uint64_t OwnRangesBytes(uint64_t scales, uint64_t x_bytes) {
  if (scales <= 1024) return 0;
  return x_bytes < (256 << 20) ? x_bytes / 4 : 64 << 20;
}

}  // namespace quantd::operations

#endif  // QUANTD_SERVER_OPERATIONS_SCRATCH_BYTES_H_
