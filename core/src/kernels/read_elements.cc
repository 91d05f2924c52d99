#include "kernels/read_elements.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "kernels/find_kernel.h"
#include "kernels/kernel_table.h"
#include "quantd/values.h"
#include "types/codes.h"
#include "types/small_float.h"

namespace quantd {
namespace {

// Calls body(codes, size, to) for packed elements, in tiles of one byte per code.
template <typename To, typename Body>
void ForEachTile(ConvertTile unpack, int bits, const uint8_t* packed, size_t first, size_t size,
                 To* to, const Body& body) {
  constexpr size_t kTile = 1024;
  // Elements that fill whole bytes for every width, so that a tile begins at a byte.
  constexpr size_t kWhole = 8;
  alignas(64) std::array<uint8_t, kTile + kWhole> codes;
  while (size > 0) {
    const size_t skipped = first % kWhole;
    const size_t count = std::min(kTile, size);
    unpack(packed + (first - skipped) * static_cast<size_t>(bits) / 8, skipped + count,
           codes.data());
    body(codes.data() + skipped, count, to);
    first += count;
    to += count;
    size -= count;
  }
}

// Codes of one byte or wider, like Dequantize with scale 1 and without a zero point.
void DecodeCodes(const KernelTable& kernels, DataType type, const uint8_t* codes, size_t size,
                 float* to) {
  const float one = 1;
  DequantizeTile tile;
  tile.x = codes;
  tile.y = reinterpret_cast<uint8_t*>(to);
  tile.size = size;
  tile.scale = &one;
  FindDequantize(kernels, type, ScaleMode::kRuns)(tile);
}

template <typename From>
void Widen(const uint8_t* from, size_t size, int32_t* to) {
  for (size_t i = 0; i < size; ++i) {
    From value;
    std::memcpy(&value, from + i * sizeof(From), sizeof(From));
    to[i] = static_cast<int32_t>(value);  // NOLINT(bugprone-signed-char-misuse): INT8 is a number
  }
}

}  // namespace

void ReadFloats(DataType type, const uint8_t* bytes, size_t first, size_t size, float* to) {
  if (size == 0) return;
  const KernelTable& kernels = Kernels();
  const int bits = Info(type).bits;
  if (const ConvertTile unpack = Unpack(kernels, type); unpack != nullptr) {
    ForEachTile(unpack, bits, bytes, first, size, to,
                [&](const uint8_t* codes, size_t count, float* values) {
                  DecodeCodes(kernels, type, codes, count, values);
                });
    return;
  }
  const uint8_t* const from = bytes + first * static_cast<size_t>(bits) / 8;
  if (type == DataType::kFloat) {
    std::memcpy(to, from, size * sizeof(float));
    return;
  }
  if (type == DataType::kFloat8E8M0) {
    for (size_t i = 0; i < size; ++i) to[i] = DecodeE8M0(from[i]);
    return;
  }
  if (const ConvertTile convert = ToFloat(kernels, type); convert != nullptr) {
    convert(from, size, reinterpret_cast<uint8_t*>(to));
  } else {
    DecodeCodes(kernels, type, from, size, to);
  }
  for (size_t i = 0; i < size; ++i) {
    to[i] = to[i] == to[i] ? to[i] : std::copysign(std::numeric_limits<float>::quiet_NaN(), to[i]);
  }
}

void RoundFloats(DataType precision, float* values, size_t size) {
  const KernelTable& kernels = Kernels();
  constexpr size_t kTile = 1024;
  alignas(64) std::array<uint8_t, 2 * kTile> narrow;
  for (size_t done = 0; done < size; done += kTile) {
    const size_t count = std::min(kTile, size - done);
    auto* const floats = reinterpret_cast<uint8_t*>(values + done);
    FromFloat(kernels, precision)(floats, count, narrow.data());
    ToFloat(kernels, precision)(narrow.data(), count, floats);
  }
}

void ReadIntegers(DataType type, const uint8_t* bytes, size_t first, size_t size, int32_t* to) {
  if (size == 0) return;
  const DataTypeInfo& info = Info(type);
  const bool is_signed = info.minimum < 0;
  if (const ConvertTile unpack = Unpack(Kernels(), type); unpack != nullptr) {
    ForEachTile(unpack, info.bits, bytes, first, size, to,
                is_signed ? Widen<int8_t> : Widen<uint8_t>);
    return;
  }
  const uint8_t* const from = bytes + first * static_cast<size_t>(info.bits) / 8;
  switch (info.bits) {
    case 8:
      return (is_signed ? Widen<int8_t> : Widen<uint8_t>)(from, size, to);
    case 16:
      return (is_signed ? Widen<int16_t> : Widen<uint16_t>)(from, size, to);
    default:
      return Widen<int32_t>(from, size, to);
  }
}

void PackCodes(DataType type, const uint8_t* codes, size_t size, uint8_t* packed) {
  Pack(Kernels(), Info(type).bits)(codes, size, packed);
}

void UnpackCodes(DataType type, const uint8_t* packed, size_t size, uint8_t* codes) {
  Unpack(Kernels(), type)(packed, size, codes);
}

}  // namespace quantd
