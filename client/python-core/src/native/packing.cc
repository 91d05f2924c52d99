#include "packing.h"

#include <algorithm>
#include <cstddef>

namespace quantd::python {
namespace {

// Calls body(first, last) for parts of the elements, of which all but the last end with a byte.
template <typename Body>
void ForParts(int64_t elements, const Executor& executor, Body body) {
  constexpr int64_t kPart = 512 * 1024;
  const auto parts = static_cast<size_t>((elements + kPart - 1) / kPart);
  executor.ParallelFor(parts, [&](size_t part) {
    const int64_t first = static_cast<int64_t>(part) * kPart;
    body(first, std::min(first + kPart, elements));
  });
}

template <int kBits>
void PackPart(const uint8_t* codes, int64_t first, int64_t last, uint8_t* packed) {
  constexpr int kPerByte = 8 / kBits;
  constexpr uint32_t kMask = (1 << kBits) - 1;
  const uint8_t* from = codes + first;
  uint8_t* to = packed + first / kPerByte;
  const int64_t whole = (last - first) / kPerByte;
  for (int64_t i = 0; i < whole; ++i) {
    uint32_t byte = 0;
    for (int j = 0; j < kPerByte; ++j) byte |= (from[i * kPerByte + j] & kMask) << (j * kBits);
    to[i] = static_cast<uint8_t>(byte);
  }
  if (whole * kPerByte == last - first) return;
  uint32_t byte = 0;
  for (int j = 0; whole * kPerByte + j < last - first; ++j) {
    byte |= (from[whole * kPerByte + j] & kMask) << (j * kBits);
  }
  to[whole] = static_cast<uint8_t>(byte);
}

template <int kBits>
void UnpackPart(const uint8_t* packed, int64_t first, int64_t last, uint8_t sign, uint8_t* codes) {
  constexpr int kPerByte = 8 / kBits;
  constexpr uint32_t kMask = (1 << kBits) - 1;
  const auto code = [packed, sign](int64_t byte, int j) {
    const uint32_t bits = (uint32_t{packed[byte]} >> (j * kBits)) & kMask;
    return static_cast<uint8_t>((bits ^ sign) - sign);
  };
  int64_t i = first;
  for (; i + kPerByte <= last; i += kPerByte) {
    for (int j = 0; j < kPerByte; ++j) codes[i + j] = code(i / kPerByte, j);
  }
  for (int j = 0; i + j < last; ++j) codes[i + j] = code(i / kPerByte, j);
}

}  // namespace

void Pack(DataType type, const uint8_t* codes, int64_t elements, const Executor& executor,
          uint8_t* packed) {
  const bool four = Info(type).bits == 4;
  ForParts(elements, executor, [=](int64_t first, int64_t last) {
    if (four) return PackPart<4>(codes, first, last, packed);
    PackPart<2>(codes, first, last, packed);
  });
}

void Unpack(DataType type, const uint8_t* packed, int64_t elements, const Executor& executor,
            uint8_t* codes) {
  const DataTypeInfo& info = Info(type);
  const auto sign = static_cast<uint8_t>(info.minimum < 0 ? 1 << (info.bits - 1) : 0);
  ForParts(elements, executor, [=, &info](int64_t first, int64_t last) {
    if (info.bits == 4) return UnpackPart<4>(packed, first, last, sign, codes);
    UnpackPart<2>(packed, first, last, sign, codes);
  });
}

}  // namespace quantd::python
