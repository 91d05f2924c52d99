#include "packing.h"

#include <algorithm>
#include <cstddef>

namespace quantd::python {
namespace {

// Calls body(first, last) for parts of the elements; all parts but the last end at the end of a
// byte.
template <typename Body>
void ForParts(int64_t elements, const Executor& executor, Body body) {
  constexpr int64_t kPart = 512 * 1024;
  const auto parts = static_cast<size_t>((elements + kPart - 1) / kPart);
  executor.ParallelFor(parts, [&](size_t part) {
    const int64_t first = static_cast<int64_t>(part) * kPart;
    body(first, std::min(first + kPart, elements));
  });
}

// The smallest number of elements that fills whole bytes: two of 4 bits, four of 2 or 6.
template <int kBits>
struct Group {
  static constexpr int kBytes = 8 % kBits == 0 ? 1 : 3;
  static constexpr int kElements = kBytes * 8 / kBits;
  static constexpr uint32_t kMask = (1 << kBits) - 1;
  static_assert(kElements * kBits == kBytes * 8);
};

// `count` elements: a whole group, or the rest.
template <int kBits>
inline void PackGroup(const uint8_t* codes, int count, uint8_t* to) {
  uint32_t word = 0;
  for (int j = 0; j < count; ++j) word |= (codes[j] & Group<kBits>::kMask) << (j * kBits);
  for (int b = 0; b < (count * kBits + 7) / 8; ++b) to[b] = static_cast<uint8_t>(word >> 8 * b);
}

template <int kBits>
inline void UnpackGroup(const uint8_t* from, int count, uint8_t sign, uint8_t* codes) {
  uint32_t word = 0;
  for (int b = 0; b < (count * kBits + 7) / 8; ++b) word |= uint32_t{from[b]} << 8 * b;
  for (int j = 0; j < count; ++j) {
    codes[j] = static_cast<uint8_t>((((word >> (j * kBits)) & Group<kBits>::kMask) ^ sign) - sign);
  }
}

// Calls body(codes, count, packed) for the groups of elements [first, last).
template <int kBits, typename Codes, typename Packed, typename Body>
inline void ForGroups(Codes* codes, int64_t first, int64_t last, Packed* packed, Body body) {
  using G = Group<kBits>;
  Packed* at = packed + first / G::kElements * G::kBytes;
  int64_t i = first;
  for (; i + G::kElements <= last; i += G::kElements, at += G::kBytes) {
    body(codes + i, G::kElements, at);
  }
  if (i < last) body(codes + i, static_cast<int>(last - i), at);
}

template <int kBits>
void PackAll(const uint8_t* codes, int64_t elements, const Executor& executor, uint8_t* packed) {
  ForParts(elements, executor, [=](int64_t first, int64_t last) {
    ForGroups<kBits>(codes, first, last, packed, [](const uint8_t* from, int count, uint8_t* to) {
      PackGroup<kBits>(from, count, to);
    });
  });
}

template <int kBits>
void UnpackAll(const uint8_t* packed, int64_t elements, uint8_t sign, const Executor& executor,
               uint8_t* codes) {
  ForParts(elements, executor, [=](int64_t first, int64_t last) {
    ForGroups<kBits>(codes, first, last, packed, [=](uint8_t* to, int count, const uint8_t* from) {
      UnpackGroup<kBits>(from, count, sign, to);
    });
  });
}

}  // namespace

void Pack(DataType type, const uint8_t* codes, int64_t elements, const Executor& executor,
          uint8_t* packed) {
  switch (Info(type).bits) {
    case 6:
      return PackAll<6>(codes, elements, executor, packed);
    case 4:
      return PackAll<4>(codes, elements, executor, packed);
    default:
      return PackAll<2>(codes, elements, executor, packed);
  }
}

void Unpack(DataType type, const uint8_t* packed, int64_t elements, const Executor& executor,
            uint8_t* codes) {
  const DataTypeInfo& info = Info(type);
  const auto sign = static_cast<uint8_t>(info.minimum < 0 ? 1 << (info.bits - 1) : 0);
  switch (info.bits) {
    case 6:
      return UnpackAll<6>(packed, elements, sign, executor, codes);
    case 4:
      return UnpackAll<4>(packed, elements, sign, executor, codes);
    default:
      return UnpackAll<2>(packed, elements, sign, executor, codes);
  }
}

}  // namespace quantd::python
