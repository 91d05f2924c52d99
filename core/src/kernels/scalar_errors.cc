// The error report: how a tile is cut into pieces, what saturates, the sums at the end, and the
// plain loop over a piece.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "kernels/error_lanes.h"
#include "kernels/simd_targets.h"
#include "types/codes.h"
#include "types/small_float.h"

namespace quantd {
namespace {

template <typename T>
T Load(const uint8_t* bytes, size_t index) {
  T value;
  std::memcpy(&value, bytes + index * sizeof(T), sizeof(T));
  return value;
}

// Half to even. (std::nearbyint is a call where the baseline has no SSE4.1.)
float Round(float value) {
  constexpr float kMagic = 0x1.8p23f;
  return std::fabs(value) < 0x1p22f ? (value + kMagic) - kMagic : value;
}

// The smallest magnitude that rounds past the largest finite value of a FLOAT8 or FLOAT4: half a
// step above it, or just more where the tie goes down (E4M3FN: 464 is 448).
float OverflowsFrom(Encoder encoder) {
  switch (encoder) {
    case Encoder::kFloat8E4M3Fn:
      return std::nextafter(464.0f, 1000.0f);
    case Encoder::kFloat8E4M3Fnuz:
      return 248.0f;
    case Encoder::kFloat4E2M1:
      return 7.0f;
    default:
      return 61440.0f;
  }
}

bool IsInteger(Encoder encoder) {
  return encoder == Encoder::kInteger8 || encoder == Encoder::kInteger16;
}

size_t CodeBytes(Encoder encoder) { return encoder == Encoder::kInteger16 ? 2 : 1; }

// x as the division takes it.
float Rounded(Division division, float value) {
  if (division == Division::kDivideFloat16) return RoundTo(DataType::kFloat16, value);
  if (division == Division::kDivideBfloat16) return RoundTo(DataType::kBfloat16, value);
  return value;
}

// The value of every code of a FLOAT8 or FLOAT4 encoder.
const std::array<float, 256>& ValuesOf(Encoder encoder) {
  static const auto tables = [] {
    std::array<std::array<float, 256>, kEncoders> all = {};
    for (size_t e = static_cast<size_t>(Encoder::kFloat8E4M3Fn); e < kEncoders; ++e) {
      const DataType type = TypeOf(static_cast<Encoder>(e));
      const uint32_t mask = (1u << Info(type).bits) - 1;
      for (uint32_t code = 0; code < 256; ++code) {
        all[e][code] = DecodeFloat(type, code & mask);
      }
    }
    return all;
  }();
  return tables[static_cast<size_t>(encoder)];
}

// `floats` are ValuesOf an encoder of floats.
double ValueOf(const ErrorTile& tile, const float* floats, const uint8_t* codes, size_t i) {
  switch (tile.encoder) {
    case Encoder::kInteger8:
      return tile.is_signed ? static_cast<int8_t>(codes[i]) : codes[i];
    case Encoder::kInteger16:
      return tile.is_signed ? Load<int16_t>(codes, i) : Load<uint16_t>(codes, i);
    default:
      return floats[codes[i]];
  }
}

void AddPiece(const ErrorTile& tile, const ErrorPiece& piece, ErrorLanes& lanes) {
  const ErrorBounds bounds = BoundsOf(tile);
  const float* floats = IsInteger(tile.encoder) ? nullptr : ValuesOf(tile.encoder).data();
  for (size_t i = 0; i < piece.size; ++i) {
    const size_t k = i * piece.stride;
    const auto x = Load<float>(piece.x, i);
    const float zero_point = piece.zero_point == nullptr ? 0.0f : piece.zero_point[k];
    float t = Rounded(tile.division, Rounded(tile.division, x) / piece.scale[k]);
    if (bounds.adds) t += zero_point;
    if (bounds.rounds) t = Round(t);
    const float less = bounds.adds ? 0.0f : zero_point;
    lanes.saturated += (t < bounds.low - less) | (t > bounds.high - less);
    if (!std::isfinite(x)) continue;
    ++lanes.finite;
    const double wide = piece.int32 == nullptr ? static_cast<double>(x)
                                               : static_cast<double>(Load<int32_t>(piece.int32, i));
    const double error =
        wide - (ValueOf(tile, floats, piece.codes, i) - static_cast<double>(zero_point)) *
                   static_cast<double>(piece.dequantize_scale[k]);
    const size_t lane = i % kErrorLanes;
    lanes.signal[lane] += wide * wide;
    lanes.noise[lane] += error * error;
    lanes.largest[lane] = std::max(lanes.largest[lane], std::fabs(error));
  }
}

// `count` elements filled up to whole steps: x with NaN, which adds nothing.
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

// Entries an element each, for runs that are shorter than a step.
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
  const bool has_point =
      IsInteger(tile.encoder) || tile.encoder == Encoder::kFloat4E2M1;  // FLOAT8 ignores it
  const bool runs = tile.mode == ScaleMode::kRuns;
  const bool spread = runs && tile.run < kErrorStep;
  size_t left = runs ? tile.run - tile.first : tile.size;  // of the run
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
    size_t entries = runs ? 0 : next.size;  // that are done with
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
  if (std::isnan(noise)) largest = noise;  // a maximum passes over a NaN
  sums.signal += signal;
  sums.noise += noise;
  sums.max_absolute_error = largest;
  sums.finite_elements += lanes.finite;
  sums.saturated_elements += lanes.saturated;
  sums.non_finite_elements += tile.size - lanes.finite;
}

void FillScalarErrors(KernelTable& table) {
  table.add_errors = [](const ErrorTile& tile, ErrorLanes& lanes) {
    ForEachErrorPiece(tile, AddPiece, lanes);
  };
}

}  // namespace quantd
