// How many elements a task takes at a time.
#ifndef QUANTD_SRC_LINEAR_WINDOWS_H_
#define QUANTD_SRC_LINEAR_WINDOWS_H_

#include <cstdint>

#include "pool/watch.h"

namespace quantd {

// Between two looks at the watch, where FLOATs are read or written in place: 64 KiB of them, or 1
// MiB with streaming stores, which every call waits for at its end. In Quantize windows of 64 KiB
// cost 2 % against one call for the whole tensor, those of a tile, which others pass through, 16 %:
// hence two sizes.
inline constexpr int64_t kLongWindow = TaskWatch::kPeriod / 4;
inline constexpr int64_t kStreamWindow = 16 * kLongWindow;
// Codes of a byte that wait for packing, or are unpacked; with their FLOATs they stay in L1.
inline constexpr int64_t kCodeWindow = 4096;

}  // namespace quantd

#endif  // QUANTD_SRC_LINEAR_WINDOWS_H_
