// The error report's plain loop over a piece.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "kernels/error_pieces.h"
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

// Half to even. (std::nearbyint is a function call if the baseline has no SSE4.1.)
float Round(float value) {
  constexpr float kMagic = 0x1.8p23f;
  return std::fabs(value) < 0x1p22f ? (value + kMagic) - kMagic : value;
}

// x rounded to the type of the division.
float Rounded(Division division, float value) {
  if (division == Division::kDivideFloat16) return RoundTo(DataType::kFloat16, value);
  if (division == Division::kDivideBfloat16) return RoundTo(DataType::kBfloat16, value);
  return value;
}

// The value of every code of a FLOAT8, FLOAT6 or FLOAT4 encoder.
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

// `floats` are ValuesOf a floating-point encoder.
double ValueOf(const ErrorTile& tile, const float* floats, const uint8_t* codes, size_t i) {
  switch (tile.encoder) {
    case Encoder::kInteger8:
      return tile.decoder == Decoder::kInt8 ? static_cast<int8_t>(codes[i]) : codes[i];
    case Encoder::kInteger16:
      return tile.decoder == Decoder::kInt16 ? Load<int16_t>(codes, i) : Load<uint16_t>(codes, i);
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

}  // namespace

void FillScalarErrors(KernelTable& table) {
  table.add_errors = [](const ErrorTile& tile, ErrorLanes& lanes) {
    ForEachErrorPiece(tile, AddPiece, lanes);
  };
}

}  // namespace quantd
