// The scalar table's part for layouts: plain loops over rules/layouts.h.
#include <algorithm>
#include <cstring>

#include "kernels/simd_targets.h"
#include "rules/layouts.h"

namespace quantd {
namespace {

template <typename Bits>
uint32_t Largest(const uint8_t* x, size_t rows, size_t size, size_t stride) {
  constexpr Bits kMagnitude = static_cast<Bits>(~Bits{0}) >> 1;
  Bits largest = 0;
  for (size_t row = 0; row < rows; ++row) {
    for (size_t i = 0; i < size; ++i) {
      Bits bits;
      std::memcpy(&bits, x + row * stride + i * sizeof(Bits), sizeof(Bits));
      largest = std::max<Bits>(largest, bits & kMagnitude);
    }
  }
  return largest;
}

uint8_t* PutFloat16(float value, uint8_t* y) {
  const uint16_t code = EncodeFloat16(value);
  std::memcpy(y, &code, sizeof(code));
  return y + sizeof(code);
}
bool FitsFloat16(float value) { return !Overflows(kFloat16Format, value); }

constexpr int kBlock = rules::kGgufBlock;

// Packs 4-bit codes: the first half of them in the low half of each byte.
void PutHalves(const uint32_t* codes, uint8_t* y) {
  for (int i = 0; i < kBlock / 2; ++i) {
    y[i] = static_cast<uint8_t>((codes[i] & 15) | (codes[i + kBlock / 2] & 15) << 4);
  }
}
// The fifth bits of codes.
uint8_t* PutFifthBits(const uint32_t* codes, uint8_t* y) {
  uint32_t bits = 0;
  for (int i = 0; i < kBlock; ++i) bits |= codes[i] >> 4 << i;
  std::memcpy(y, &bits, sizeof(bits));
  return y + sizeof(bits);
}

// Q4_0 and Q5_0, where the extreme element has code 0.
template <int kBits>
bool EncodeFromExtreme(const float* x, uint8_t* y) {
  constexpr int kMiddle = 1 << (kBits - 1);
  const float d = rules::ExtremeOf(x) / -kMiddle;
  const float inverse = rules::Reciprocal(d);
  uint32_t codes[kBlock];
  for (int i = 0; i < kBlock; ++i) {
    codes[i] =
        std::min<uint32_t>(rules::Truncated(x[i] * inverse + (kMiddle + 0.5f)), 2 * kMiddle - 1);
  }
  y = PutFloat16(d, y);
  if (kBits == 5) y = PutFifthBits(codes, y);
  PutHalves(codes, y);
  return !FitsFloat16(d);
}

// Q4_1 and Q5_1, from the smallest element to the largest.
template <int kBits>
bool EncodeRange(const float* x, uint8_t* y) {
  constexpr int kLargest = (1 << kBits) - 1;
  const float least = rules::SmallestOf(x);
  const float d = (rules::LargestOf(x) - least) / kLargest;
  const float inverse = rules::Reciprocal(d);
  uint32_t codes[kBlock];
  for (int i = 0; i < kBlock; ++i) {
    codes[i] = std::min<uint32_t>(rules::Truncated((x[i] - least) * inverse + 0.5f), kLargest);
  }
  y = PutFloat16(d, y);
  y = PutFloat16(least, y);
  if (kBits == 5) y = PutFifthBits(codes, y);
  PutHalves(codes, y);
  return !FitsFloat16(d) || !FitsFloat16(least);
}

template <GgufBlock kType>
bool EncodeBlock(const float* x, uint8_t* y) {
  switch (kType) {
    case GgufBlock::kQ4_0:
      return EncodeFromExtreme<4>(x, y);
    case GgufBlock::kQ5_0:
      return EncodeFromExtreme<5>(x, y);
    case GgufBlock::kQ4_1:
      return EncodeRange<4>(x, y);
    case GgufBlock::kQ5_1:
      return EncodeRange<5>(x, y);
    case GgufBlock::kQ8_0: {
      const float d = std::fabs(rules::ExtremeOf(x)) / 127;
      const float inverse = rules::Reciprocal(d);
      y = PutFloat16(d, y);
      for (int i = 0; i < kBlock; ++i) {
        y[i] = static_cast<uint8_t>(rules::RoundedAway(x[i] * inverse));
      }
      return !FitsFloat16(d);
    }
    case GgufBlock::kMxfp4: {
      const uint8_t exponent = rules::GgufExponent(std::fabs(rules::ExtremeOf(x)));
      const float unit = rules::GgufUnit(exponent);
      uint32_t codes[kBlock];
      for (int i = 0; i < kBlock; ++i) codes[i] = rules::GgufNearest(x[i], unit);
      y[0] = exponent;
      PutHalves(codes, y + 1);
      return false;
    }
  }
}

template <GgufBlock kType, size_t kBytes>
bool Gguf(const uint8_t* x, size_t blocks, uint8_t* y) {
  bool too_large = false;
  for (size_t block = 0; block < blocks; ++block) {
    float values[kBlock];
    std::memcpy(values, x + block * sizeof(values), sizeof(values));
    too_large |= EncodeBlock<kType>(values, y + block * kBytes);
  }
  return too_large;
}

template <BnbTable kTable>
void Bnb(const uint8_t* x, size_t blocks, float* absmax, uint8_t* codes) {
  constexpr const rules::Table4& kCodes =
      kTable == BnbTable::kNf4 ? rules::kNf4Table : rules::kFp4Table;
  for (size_t block = 0; block < blocks; ++block) {
    float values[rules::kBnbBlock];
    std::memcpy(values, x + block * sizeof(values), sizeof(values));
    absmax[block] = 0;
    for (const float value : values) absmax[block] = std::max(absmax[block], std::fabs(value));
    for (int i = 0; i < rules::kBnbBlock; i += 2) {
      const uint32_t high = kCodes.Code(rules::WholeBlockValue(values[i], absmax[block]));
      const uint32_t low = kCodes.Code(rules::WholeBlockValue(values[i + 1], absmax[block]));
      *codes++ = static_cast<uint8_t>(high << 4 | low);
    }
  }
}

}  // namespace

void FillScalarLayouts(KernelTable& table) {
  table.largest16 = Largest<uint16_t>;
  table.largest32 = Largest<uint32_t>;
#define QUANTD_GGUF(block, bytes) \
  table.gguf[static_cast<size_t>(GgufBlock::block)] = Gguf<GgufBlock::block, bytes>;
#define QUANTD_BNB(name) table.bnb[static_cast<size_t>(BnbTable::name)] = Bnb<BnbTable::name>;
#include "kernels/kernels.inc"
}

}  // namespace quantd
