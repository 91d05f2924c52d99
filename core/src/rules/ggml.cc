#include "rules/ggml.h"

#include "rules/layouts.h"

namespace quantd::rules {
namespace {

constexpr int kBlock = kGgufBlock;
constexpr int kSuper = 256;

float Half(const uint8_t* x) { return DecodeFloat16(static_cast<uint16_t>(x[0] | x[1] << 8)); }

// 4-bit code i: the first half of the codes is in the low halves of bytes.
int Nibble(const uint8_t* qs, int i) {
  return qs[i % (kBlock / 2)] >> (i < kBlock / 2 ? 0 : 4) & 15;
}
int FifthBit(const uint8_t* qh, int i) { return (qh[i / 8] >> (i % 8) & 1) << 4; }

void Q8_0(const uint8_t* block, float* y) {
  const float d = Half(block);
  for (int i = 0; i < kBlock; ++i) y[i] = static_cast<float>(static_cast<int8_t>(block[2 + i])) * d;
}
void Q4_0(const uint8_t* block, float* y) {
  const float d = Half(block);
  for (int i = 0; i < kBlock; ++i) y[i] = static_cast<float>(Nibble(block + 2, i) - 8) * d;
}
void Q4_1(const uint8_t* block, float* y) {
  const float d = Half(block);
  const float m = Half(block + 2);
  for (int i = 0; i < kBlock; ++i) y[i] = d * static_cast<float>(Nibble(block + 4, i)) + m;
}
void Q5_0(const uint8_t* block, float* y) {
  const float d = Half(block);
  for (int i = 0; i < kBlock; ++i) {
    y[i] = static_cast<float>((Nibble(block + 6, i) | FifthBit(block + 2, i)) - 16) * d;
  }
}
void Q5_1(const uint8_t* block, float* y) {
  const float d = Half(block);
  const float m = Half(block + 2);
  for (int i = 0; i < kBlock; ++i) {
    y[i] = d * static_cast<float>(Nibble(block + 8, i) | FifthBit(block + 4, i)) + m;
  }
}
void Mxfp4(const uint8_t* block, float* y) {
  const float unit = GgufUnit(block[0]);
  for (int i = 0; i < kBlock; ++i) {
    y[i] = unit * static_cast<float>(kGgufValues[Nibble(block + 1, i)]);
  }
}

// Q2_K and Q3_K: two bits of element i.
int Pair(const uint8_t* qs, int i) { return qs[32 * (i / 128) + i % 32] >> 2 * (i / 32 % 4) & 3; }

// scales[16], qs[64], d, dmin
void Q2K(const uint8_t* block, float* y) {
  const uint8_t* const qs = block + 16;
  const float d = Half(block + 80);
  const float dmin = Half(block + 82);
  for (int i = 0; i < kSuper; ++i) {
    const uint8_t scale = block[i / 16];
    y[i] = d * static_cast<float>(scale & 15) * static_cast<float>(Pair(qs, i)) -
           dmin * static_cast<float>(scale >> 4);
  }
}

// hmask[32], qs[64], scales[12], d
void Q3K(const uint8_t* block, float* y) {
  const uint8_t* const qs = block + 32;
  const uint8_t* const scales = block + 96;
  const float d = Half(block + 108);
  for (int i = 0; i < kSuper; ++i) {
    const int k = i / 16;
    const int scale =
        ((scales[k % 8] >> 4 * (k / 8) & 15) | (scales[8 + k % 4] >> 2 * (k / 4) & 3) << 4) - 32;
    const int q = Pair(qs, i) - ((block[i % 32] >> (i / 32) & 1) != 0 ? 0 : 4);
    y[i] = d * static_cast<float>(scale) * static_cast<float>(q);
  }
}

// Scale and minimum of 32 elements, 6 bits each: of Q4_K and Q5_K.
struct SixBits {
  int scale;
  int minimum;
};
SixBits SixBitsOf(const uint8_t* s, int j) {
  if (j < 4) return {s[j] & 63, s[j + 4] & 63};
  return {(s[j + 4] & 15) | s[j - 4] >> 6 << 4, s[j + 4] >> 4 | s[j] >> 6 << 4};
}
int NibbleK(const uint8_t* qs, int i) {
  return qs[32 * (i / 64) + i % 32] >> 4 * (i / 32 % 2) & 15;
}

// d, dmin, s[12], qs[128]; Q5_K has qh[32] before qs
template <int kBits>
void Q45K(const uint8_t* block, float* y) {
  const float d = Half(block);
  const float dmin = Half(block + 2);
  const uint8_t* const qh = block + 16;
  const uint8_t* const qs = block + (kBits == 5 ? 48 : 16);
  for (int i = 0; i < kSuper; ++i) {
    const SixBits six = SixBitsOf(block + 4, i / 32);
    int q = NibbleK(qs, i);
    if (kBits == 5) q += (qh[i % 32] >> (i / 32) & 1) << 4;
    y[i] = d * static_cast<float>(six.scale) * static_cast<float>(q) -
           dmin * static_cast<float>(six.minimum);
  }
}

// ql[128], qh[64], I8 scales[16], d
void Q6K(const uint8_t* block, float* y) {
  const uint8_t* const qh = block + 128;
  const uint8_t* const scales = block + 192;
  const float d = Half(block + 208);
  for (int i = 0; i < kSuper; ++i) {
    const int h = i / 128;
    const int r = i % 128;
    const int q = ((block[64 * h + r % 64] >> 4 * (r / 64) & 15) |
                   (qh[32 * h + r % 32] >> 2 * (r / 32) & 3) << 4) -
                  32;
    y[i] = d * static_cast<float>(static_cast<int8_t>(scales[i / 16])) * static_cast<float>(q);
  }
}

}  // namespace

GgmlDecoder GgmlDecoderOf(Layout layout) {
  switch (layout) {
    case Layout::kGgufQ8_0:
      return Q8_0;
    case Layout::kGgufQ4_0:
      return Q4_0;
    case Layout::kGgufQ4_1:
      return Q4_1;
    case Layout::kGgufQ5_0:
      return Q5_0;
    case Layout::kGgufQ5_1:
      return Q5_1;
    case Layout::kGgufMxfp4:
      return Mxfp4;
    case Layout::kGgufQ2K:
      return Q2K;
    case Layout::kGgufQ3K:
      return Q3K;
    case Layout::kGgufQ4K:
      return Q45K<4>;
    case Layout::kGgufQ5K:
      return Q45K<5>;
    default:
      return Q6K;
  }
}

}  // namespace quantd::rules
