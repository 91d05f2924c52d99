// How many elements a task processes at a time.
#ifndef QUANTD_SRC_LINEAR_WINDOWS_H_
#define QUANTD_SRC_LINEAR_WINDOWS_H_

#include <cstdint>

#include "pool/watch.h"

namespace quantd {

// Tasks and parts begin at multiples of this many elements, which fill whole bytes for every type:
// a cache line of 8-bit codes.
inline constexpr int64_t kGroup = 64;
// Elements that are converted in a FLOAT tile; its 4 KiB stay in L1 together with the results.
inline constexpr int64_t kTile = 1024;
// Elements between two checks of the watch if FLOATs are read or written in place: 64 KiB of them,
// or 1 MiB with streaming stores, which every call waits for at its end. Compared with one call for
// the whole tensor, windows of 64 KiB cost Quantize 2 %, and windows of a tile, which converted
// elements need, 16 %: hence two sizes.
inline constexpr int64_t kLongWindow = TaskWatch::kPeriod / 4;
inline constexpr int64_t kStreamWindow = 16 * kLongWindow;
// Codes, one per byte, that wait for packing or are unpacked; they stay in L1 with their FLOATs.
inline constexpr int64_t kCodeWindow = 4096;

}  // namespace quantd

#endif  // QUANTD_SRC_LINEAR_WINDOWS_H_
