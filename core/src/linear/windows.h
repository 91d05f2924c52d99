// How many elements a task takes at a time.
#ifndef QUANTD_SRC_LINEAR_WINDOWS_H_
#define QUANTD_SRC_LINEAR_WINDOWS_H_

#include <cstdint>

#include "pool/watch.h"

namespace quantd {

// Tasks and parts begin at multiples of this many elements, which fill whole bytes whatever the
// type: a cache line of 8-bit codes.
inline constexpr int64_t kGroup = 64;
// Elements that pass through a FLOAT tile; its 4 KiB stay in L1 beside what is made of them.
inline constexpr int64_t kTile = 1024;
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
