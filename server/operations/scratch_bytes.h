// The memory that execution uses in addition to the response.
#ifndef QUANTD_SERVER_OPERATIONS_SCRATCH_BYTES_H_
#define QUANTD_SERVER_OPERATIONS_SCRATCH_BYTES_H_

#include <cstdint>

namespace quantd::operations {

// For each scale: its range, the scale as a float, its reciprocal in two parts, and the zero point.
// In addition the ranges of the tasks.
constexpr uint64_t ScratchBytes(uint64_t scales) { return 32 * scales + (64 << 10); }

// The ranges that tasks of DynamicQuantize keep for themselves if there are many scales: a quarter
// of x, and at most 64 MiB. Compared with an x that came in a message this is negligible.
constexpr uint64_t OwnRangesBytes(uint64_t scales, uint64_t x_bytes) {
  if (scales <= 1024) return 0;
  return x_bytes < (256 << 20) ? x_bytes / 4 : 64 << 20;
}

}  // namespace quantd::operations

#endif  // QUANTD_SERVER_OPERATIONS_SCRATCH_BYTES_H_
