#include "kernels/error_pieces.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "types/small_float.h"

namespace quantd {
namespace {

// The smallest magnitude that rounds past the largest finite value of a FLOAT8, FLOAT6 or FLOAT4:
// half a step above it, or slightly more if the tie goes down (E4M3FN: 464 becomes 448).
float OverflowsFrom(Encoder encoder) {
  const FloatFormat& format = FormatOf(TypeOf(encoder));
  const float largest = DecodeFormat(format, format.largest);
  const float tie = largest + (largest - DecodeFormat(format, format.largest - 1)) / 2;
  return format.largest % 2 == 0 ? std::nextafter(tie, 2 * tie) : tie;
}

size_t CodeBytes(Encoder encoder) { return encoder == Encoder::kInteger16 ? 2 : 1; }

// `count` elements padded to whole steps: x with NaN, which adds nothing.
struct FilledPiece {
  uint8_t x[kErrorPiece * sizeof(float)];
  uint8_t int32[kErrorPiece * sizeof(int32_t)];
  uint8_t codes[kErrorPiece * 2];

  void Fill(const ErrorPiece& piece, size_t code_bytes, size_t whole) {
    std::memcpy(x, piece.x, piece.size * sizeof(float));
    if (piece.int32 != nullptr) std::memcpy(int32, piece.int32, piece.size * sizeof(int32_t));
    std::memcpy(codes, piece.codes, piece.size * code_bytes);
    const float nan = std::nanf("");
    for (size_t i = piece.size; i < whole; ++i) std::memcpy(x + i * sizeof(float), &nan, 4);
    std::memset(codes + piece.size * code_bytes, 0, (whole - piece.size) * code_bytes);
  }
};

// Entries copied for each element, for runs that are shorter than a step.
struct SpreadScales {
  float scale[kErrorPiece];
  float dequantize_scale[kErrorPiece];
  float zero_point[kErrorPiece];

  void Set(const ErrorPiece& from, size_t k, size_t i) {
    scale[i] = from.scale[k];
    dequantize_scale[i] = from.dequantize_scale[k];
    zero_point[i] = from.zero_point == nullptr ? 0.0f : from.zero_point[k];
  }
};

}  // namespace

ErrorBounds BoundsOf(const ErrorTile& tile) {
  if (IsInteger(tile.encoder)) {
    return {true, tile.division == Division::kDivideAndAdd, static_cast<float>(tile.minimum),
            static_cast<float>(tile.maximum)};
  }
  const float high = std::nextafter(OverflowsFrom(tile.encoder), 0.0f);
  return {false, true, -high, high};
}

void ForEachErrorPiece(const ErrorTile& tile, AddErrorPiece add, ErrorLanes& lanes) {
  const size_t code_bytes = CodeBytes(tile.encoder);
  // FLOAT8 ignores it.
  const bool has_point = Info(TypeOf(tile.encoder)).kind != DataTypeKind::kFloat8;
  const bool runs = tile.mode == ScaleMode::kRuns;
  const bool spread = runs && tile.run < kErrorStep;
  size_t left = runs ? tile.run - tile.first : tile.size;  // left in the run
  ErrorPiece next = {tile.x,
                     tile.int32,
                     tile.codes,
                     0,
                     runs ? size_t{0} : size_t{1},
                     tile.scale,
                     tile.dequantize_scale,
                     has_point ? tile.zero_point : nullptr};
  const auto advance = [&next](size_t entries) {
    next.scale += entries;
    next.dequantize_scale += entries;
    if (next.zero_point != nullptr) next.zero_point += entries;
  };
  for (size_t done = 0; done < tile.size; done += next.size) {
    next.x = tile.x + done * sizeof(float);
    if (tile.int32 != nullptr) next.int32 = tile.int32 + done * sizeof(int32_t);
    next.codes = tile.codes + done * code_bytes;
    next.size = std::min(kErrorPiece, tile.size - done);
    if (!spread) next.size = std::min(next.size, left);
    ErrorPiece piece = next;
    FilledPiece filled;
    SpreadScales scales;
    piece.size = (next.size + kErrorStep - 1) / kErrorStep * kErrorStep;
    if (piece.size != next.size) {
      filled.Fill(next, code_bytes, piece.size);
      piece.x = filled.x;
      if (piece.int32 != nullptr) piece.int32 = filled.int32;
      piece.codes = filled.codes;
    }
    size_t entries = runs ? 0 : next.size;  // entries that are done
    if (spread || (!runs && piece.size != next.size)) {
      for (size_t i = 0; i < next.size; ++i) {
        scales.Set(next, runs ? entries : i, i);
        if (runs && --left == 0) {
          ++entries;
          left = tile.run;
        }
      }
      for (size_t i = next.size; i < piece.size; ++i) scales.Set(next, 0, i);
      piece.stride = 1;
      piece.scale = scales.scale;
      piece.dequantize_scale = scales.dequantize_scale;
      piece.zero_point = scales.zero_point;
    } else if (runs) {
      left -= next.size;
      if (left == 0) {
        entries = 1;
        left = tile.run;
      }
    }
    add(tile, piece, lanes);
    advance(entries);
  }
}

void AddErrors(const KernelTable& table, const ErrorTile& tile, ErrorSums& sums) {
  ErrorLanes lanes;
  table.add_errors(tile, lanes);
  double signal = 0;
  double noise = 0;
  double largest = sums.max_absolute_error;
  for (size_t lane = 0; lane < kErrorLanes; ++lane) {
    signal += lanes.signal[lane];
    noise += lanes.noise[lane];
    largest = std::max(largest, lanes.largest[lane]);
  }
  if (std::isnan(noise)) largest = noise;  // std::max would skip a NaN
  sums.signal += signal;
  sums.noise += noise;
  sums.max_absolute_error = largest;
  sums.finite_elements += lanes.finite;
  sums.saturated_elements += lanes.saturated;
  sums.non_finite_elements += tile.size - lanes.finite;
}

}  // namespace quantd
