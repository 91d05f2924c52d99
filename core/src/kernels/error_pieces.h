// Shared by the error report's loops of all targets: how a tile is cut into pieces, what saturates,
// and the partial sums. Each element is added to one of eight lanes, by its position, so that
// vectors of any width add in the same order and all targets get the same result.
#ifndef QUANTD_SRC_KERNELS_ERROR_PIECES_H_
#define QUANTD_SRC_KERNELS_ERROR_PIECES_H_

#include <cstddef>
#include <cstdint>

#include "kernels/kernel_table.h"

namespace quantd {

inline constexpr size_t kErrorLanes = 8;
inline constexpr size_t kErrorStep = 16;    // elements; an incomplete step is padded with NaN
inline constexpr size_t kErrorPiece = 256;  // elements at a time: buffers fit the L1 cache

struct ErrorLanes {
  double signal[kErrorLanes] = {};
  double noise[kErrorLanes] = {};
  double largest[kErrorLanes] = {};
  uint64_t finite = 0;
  uint64_t saturated = 0;
};

// Elements whose scales are found in the same way: element i of the piece has entry i * stride.
struct ErrorPiece {
  const uint8_t* x;      // floats
  const uint8_t* int32;  // as in ErrorTile
  const uint8_t* codes;  // for Encoder
  size_t size;           // <= kErrorPiece, a multiple of kErrorStep
  size_t stride;         // 0 or 1
  const float* scale;
  const float* dequantize_scale;
  const float* zero_point;  // or null
};

inline bool IsInteger(Encoder encoder) {
  return encoder == Encoder::kInteger8 || encoder == Encoder::kInteger16;
}

// What counts as saturated, by encoder. t is x / scale, plus the zero point if that is added before
// the bounds apply, rounded for integers. All t < low and t > high are saturated (never NaN).
struct ErrorBounds {
  bool rounds;  // t is rounded half to even
  bool adds;    // the zero point is added before rounding; otherwise the bounds are less by it
  float low;
  float high;
};
ErrorBounds BoundsOf(const ErrorTile& tile);

// Calls add(tile, piece, lanes) for all pieces of a tile.
using AddErrorPiece = void (*)(const ErrorTile& tile, const ErrorPiece& piece, ErrorLanes& lanes);
void ForEachErrorPiece(const ErrorTile& tile, AddErrorPiece add, ErrorLanes& lanes);

}  // namespace quantd

#endif  // QUANTD_SRC_KERNELS_ERROR_PIECES_H_
