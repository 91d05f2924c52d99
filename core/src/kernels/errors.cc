// The error report's sums. Asked for rarely, so plain loops in double: about 1 GB/s of FLOAT.
#include <array>
#include <cmath>
#include <cstring>

#include "kernels/kernel_table.h"
#include "reference/elements.h"

namespace quantd {
namespace {

constexpr size_t kPiece = 256;  // elements at a time; the buffers fit the first-level cache

// Part of a tile whose elements share a scale (stride 0) or have one each (stride 1).
struct Piece {
  const uint8_t* x;
  const uint8_t* codes;
  size_t size;  // <= kPiece
  size_t stride;
  const float* scale;
  const float* dequantize_scale;
  const float* zero_point;  // or null
};

template <typename T>
T Load(const uint8_t* bytes, size_t index) {
  T value;
  std::memcpy(&value, bytes + index * sizeof(T), sizeof(T));
  return value;
}

// Half to even. (std::nearbyint is a call where the baseline has no SSE4.1.)
double Round(double value) {
  constexpr double kMagic = 0x1.8p52;
  return std::fabs(value) < 0x1p51 ? (value + kMagic) - kMagic : value;
}

DataType FloatTypeOf(Encoder encoder) {
  switch (encoder) {
    case Encoder::kFloat8E4M3Fn:
      return DataType::kFloat8E4M3Fn;
    case Encoder::kFloat8E4M3Fnuz:
      return DataType::kFloat8E4M3Fnuz;
    case Encoder::kFloat8E5M2:
      return DataType::kFloat8E5M2;
    case Encoder::kFloat8E5M2Fnuz:
      return DataType::kFloat8E5M2Fnuz;
    default:
      return DataType::kFloat4E2M1;
  }
}

// The value of every code of a FLOAT8 or FLOAT4 encoder.
const std::array<float, 256>& Values(Encoder encoder) {
  static const auto tables = [] {
    std::array<std::array<float, 256>, kEncoders> all = {};
    for (size_t e = static_cast<size_t>(Encoder::kFloat8E4M3Fn); e < kEncoders; ++e) {
      const DataType type = FloatTypeOf(static_cast<Encoder>(e));
      const uint32_t mask = (1u << Info(type).bits) - 1;
      for (uint32_t code = 0; code < 256; ++code) {
        all[e][code] = reference::DecodeFloat(type, code & mask);
      }
    }
    return all;
  }();
  return tables[static_cast<size_t>(encoder)];
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

// x / scale as the kernel of the division had it.
void Quotients(Division division, const Piece& piece, float* quotients) {
  const KernelTable& kernels = Kernels();
  std::memcpy(quotients, piece.x, piece.size * sizeof(float));
  auto* bytes = reinterpret_cast<uint8_t*>(quotients);
  std::array<uint8_t, kPiece * 2> rounded;
  const auto round = [&] {
    if (division == Division::kDivideFloat16) {
      kernels.float_to_float16(bytes, piece.size, rounded.data());
      kernels.float16_to_float(rounded.data(), piece.size, bytes);
    } else if (division == Division::kDivideBfloat16) {
      kernels.float_to_bfloat16(bytes, piece.size, rounded.data());
      kernels.bfloat16_to_float(rounded.data(), piece.size, bytes);
    }
  };
  round();
  for (size_t i = 0; i < piece.size; ++i) quotients[i] /= piece.scale[i * piece.stride];
  round();
}

void Decode(const ErrorTile& tile, const Piece& piece, float* values) {
  switch (tile.encoder) {
    case Encoder::kInteger8:
      for (size_t i = 0; i < piece.size; ++i) {
        values[i] = tile.is_signed ? static_cast<int8_t>(piece.codes[i]) : piece.codes[i];
      }
      break;
    case Encoder::kInteger16:
      for (size_t i = 0; i < piece.size; ++i) {
        values[i] = tile.is_signed ? Load<int16_t>(piece.codes, i) : Load<uint16_t>(piece.codes, i);
      }
      break;
    default: {
      const std::array<float, 256>& table = Values(tile.encoder);
      for (size_t i = 0; i < piece.size; ++i) values[i] = table[piece.codes[i]];
    }
  }
}

void AddPiece(const ErrorTile& tile, const Piece& piece, ErrorSums& sums) {
  float quotients[kPiece];
  float values[kPiece];
  Quotients(tile.division, piece, quotients);
  Decode(tile, piece, values);

  const bool is_integer = tile.encoder == Encoder::kInteger8 || tile.encoder == Encoder::kInteger16;
  const bool add_first = tile.division == Division::kDivideAndAdd;
  const double overflow = is_integer ? 0.0 : OverflowsFrom(tile.encoder);
  double signal = 0;
  double noise = 0;
  double largest = sums.max_absolute_error;
  uint64_t finite = 0;
  uint64_t saturated = 0;
  for (size_t i = 0; i < piece.size; ++i) {
    const size_t k = i * piece.stride;
    const double x = Load<float>(piece.x, i);
    const float zero_point = piece.zero_point == nullptr ? 0.0f : piece.zero_point[k];
    // A NaN compares false, so it is never saturated.
    if (is_integer) {
      const double value = add_first ? Round(quotients[i] + zero_point)
                                     : Round(quotients[i]) + static_cast<double>(zero_point);
      saturated += (value < tile.minimum) | (value > tile.maximum);
    } else {
      saturated += std::fabs(quotients[i] + zero_point) >= overflow;
    }
    if (!std::isfinite(x)) continue;
    ++finite;
    const double error = x - (static_cast<double>(values[i]) - static_cast<double>(zero_point)) *
                                 static_cast<double>(piece.dequantize_scale[k]);
    signal += x * x;
    noise += error * error;
    largest = std::max(largest, std::fabs(error));
  }
  if (std::isnan(noise)) largest = noise;  // std::max passes over a NaN
  sums.signal += signal;
  sums.noise += noise;
  sums.max_absolute_error = largest;
  sums.finite_elements += finite;
  sums.saturated_elements += saturated;
  sums.non_finite_elements += piece.size - finite;
}

}  // namespace

void AddErrors(const ErrorTile& tile, ErrorSums& sums) {
  const size_t code_bytes = tile.encoder == Encoder::kInteger16 ? 2 : 1;
  const bool is_float8 =
      code_bytes == 1 && tile.encoder != Encoder::kInteger8 && tile.encoder != Encoder::kFloat4E2M1;
  const float* zero_point = is_float8 ? nullptr : tile.zero_point;
  size_t done = 0;
  while (done < tile.size) {
    size_t size = std::min(kPiece, tile.size - done);
    size_t k = done;
    if (tile.mode == ScaleMode::kRuns) {
      k = (tile.first + done) / tile.run;
      size = std::min(size, tile.run - (tile.first + done) % tile.run);
    }
    AddPiece(tile,
             {tile.x + done * sizeof(float), tile.codes + done * code_bytes, size,
              tile.mode == ScaleMode::kRuns ? size_t{0} : size_t{1}, tile.scale + k,
              tile.dequantize_scale + k, zero_point == nullptr ? nullptr : zero_point + k},
             sums);
    done += size;
  }
}

}  // namespace quantd
