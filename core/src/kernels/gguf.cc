// gguf's blocks, in batches and in three steps: the extremes of each block, the scales that follow
// from them (over the blocks), and the codes of the elements, which are packed last.
#include <algorithm>
#include <array>
#include <cstring>

#include "kernels/simd_targets.h"
#include "rules/layouts.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gguf.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
#include "kernels/blocks-inl.h"
#include "kernels/convert-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quantd {
namespace HWY_NAMESPACE {

using D128 = hn::CappedTag<uint8_t, 16>;

inline constexpr size_t kGguf = rules::kGgufBlock;
inline constexpr size_t kGgufBatch = kBatch / kGguf;

// The data of a batch of blocks.
struct GgufBatch {
  alignas(64) float low[kGgufBatch];
  alignas(64) float high[kGgufBatch];
  alignas(64) float inverse[kGgufBatch];
  alignas(64) float bias[kGgufBatch];
  alignas(64) uint16_t scale[kGgufBatch];
  alignas(64) uint16_t minimum[kGgufBatch];
  alignas(64) uint8_t codes[kBatch];
};

// Stores numbers as FLOAT16. Returns whether one is too large.
HWY_INLINE bool PutHalves(V v, uint16_t* to) {
  const DF16 narrow;
  hn::StoreU(hn::DemoteTo(narrow, v), narrow, reinterpret_cast<hwy::float16_t*>(to));
  return !hn::AllFalse(DF(), hn::Ge(hn::Abs(v), hn::Set(DF(), 65520.0f)));
}

// Scales from `d(b)`, the vector of those from block b on: FLOAT16, 1 / d, and what is added before
// a code is truncated. If 1 / d is infinite, all elements have code 0.
template <class Scale>
HWY_INLINE bool MakeScales(size_t blocks, const Scale& d_of, float bias, GgufBatch& batch) {
  const DF df;
  bool too_large = false;
  for (size_t b = 0; b < blocks; b += N) {
    const V d = d_of(b);
    const V inverse = hn::Div(hn::Set(df, 1.0f), d);
    const auto usable = hn::And(hn::Ne(d, hn::Zero(df)), hn::Lt(hn::Abs(inverse), hn::Inf(df)));
    const auto zero = hn::Eq(d, hn::Zero(df));
    hn::Store(hn::IfThenElseZero(usable, inverse), df, batch.inverse + b);
    hn::Store(hn::IfThenElseZero(hn::Or(usable, zero), hn::Set(df, bias)), df, batch.bias + b);
    too_large |= PutHalves(d, batch.scale + b);
  }
  return too_large;
}

// Packs two codes per byte in gguf's order; the codes' upper bits are ignored.
HWY_INLINE void PackBlock(const uint8_t* codes, uint8_t* y) {
  const D128 d;
  const hn::Repartition<uint16_t, D128> d16;
  const auto low = hn::And(hn::LoadU(d, codes), hn::Set(d, 15));
  const auto high =
      hn::BitCast(d, hn::ShiftLeft<4>(hn::BitCast(d16, hn::LoadU(d, codes + kGguf / 2))));
  hn::StoreU(hn::Or(low, hn::And(high, hn::Set(d, 0xF0))), d, y);
}

HWY_INLINE void PutFifthBits(const uint8_t* codes, uint8_t* y) {
  const D128 d;
  const auto bit = hn::Set(d, 16);
  uint8_t bits[2][8];  // StoreMaskBits may write 8 bytes
  for (size_t half = 0; half < 2; ++half) {
    const auto v = hn::LoadU(d, codes + half * kGguf / 2);
    hn::StoreMaskBits(d, hn::Eq(hn::And(v, bit), bit), bits[half]);
    std::memcpy(y + half * 2, bits[half], 2);
  }
}

template <bool kHasMinimum, int kBits>
HWY_INLINE void PutBlocks(const GgufBatch& batch, size_t blocks, uint8_t* y) {
  for (size_t b = 0; b < blocks; ++b) {
    const uint8_t* const codes = batch.codes + b * kGguf;
    std::memcpy(y, batch.scale + b, 2);
    y += 2;
    if (kHasMinimum) {
      std::memcpy(y, batch.minimum + b, 2);
      y += 2;
    }
    if (kBits == 8) {
      std::memcpy(y, codes, kGguf);
      y += kGguf;
      continue;
    }
    if (kBits == 5) {
      PutFifthBits(codes, y);
      y += 4;
    }
    PackBlock(codes, y);
    y += kGguf / 2;
  }
}

HWY_NOINLINE bool EncodeQ8(const uint8_t* x, size_t blocks, GgufBatch& batch, uint8_t* y) {
  const DF df;
  const DI di;
  ExtremesOf<kGguf, true>(x, blocks, MaxOp(), batch.high);
  const bool too_large = MakeScales(
      blocks,
      [&](size_t b) HWY_ATTR { return hn::Div(hn::Load(df, batch.high + b), hn::Set(df, 127.0f)); },
      0, batch);
  CodesOf<kGguf>(
      x, blocks,
      [&](V v, size_t b) HWY_ATTR {
        const V q = hn::Mul(v, hn::Set(df, batch.inverse[b]));
        // Rounds half away from zero: the integer part, plus one if the fraction is half or more.
        const V magnitude = hn::Abs(q);
        const I whole = hn::ConvertTo(di, magnitude);
        const V rest = hn::Sub(magnitude, hn::ConvertTo(df, whole));
        const I more =
            hn::VecFromMask(di, hn::RebindMask(di, hn::Ge(rest, hn::Set(df, 0.5f))));  // -1
        const I rounded = hn::Sub(whole, more);
        const I negative = hn::BroadcastSignBit(hn::BitCast(di, q));
        // With 128 added, because codes are not negative here.
        return hn::Add(hn::Sub(hn::Xor(rounded, negative), negative), hn::Set(di, 128));
      },
      batch.codes);
  for (size_t i = 0; i < blocks * kGguf; i += 4 * N) {
    const U8 codes = hn::Load(DU8(), batch.codes + i);
    hn::Store(hn::Xor(codes, hn::Set(DU8(), 0x80)), DU8(), batch.codes + i);
  }
  PutBlocks<false, 8>(batch, blocks, y);
  return too_large;
}

// Q4_0 and Q5_0.
template <int kBits>
HWY_NOINLINE bool EncodeFromExtreme(const uint8_t* x, size_t blocks, GgufBatch& batch, uint8_t* y) {
  constexpr float kMiddle = 1 << (kBits - 1);
  const DF df;
  const DI di;
  ExtremesOf<kGguf, false>(x, blocks, MinOp(), batch.low);
  ExtremesOf<kGguf, false>(x, blocks, MaxOp(), batch.high);
  for (size_t b = 0; b < blocks; ++b) {
    const float low = batch.low[b];
    const float high = batch.high[b];
    if (high != -low) {
      batch.high[b] = high > -low ? high : low;
    } else {
      float values[kGguf];
      std::memcpy(values, x + b * sizeof(values), sizeof(values));
      batch.high[b] = rules::ExtremeOf(values);
    }
  }
  const bool too_large = MakeScales(
      blocks,
      [&](size_t b)
          HWY_ATTR { return hn::Div(hn::Load(df, batch.high + b), hn::Set(df, -kMiddle)); },
      kMiddle + 0.5f, batch);
  CodesOf<kGguf>(
      x, blocks,
      [&](V v, size_t b) HWY_ATTR {
        const V q = hn::Mul(v, hn::Set(df, batch.inverse[b]));
        const I code = hn::ConvertTo(di, hn::Add(q, hn::Set(df, batch.bias[b])));
        return hn::Min(code, hn::Set(di, (1 << kBits) - 1));
      },
      batch.codes);
  PutBlocks<false, kBits>(batch, blocks, y);
  return too_large;
}

// Q4_1 and Q5_1.
template <int kBits>
HWY_NOINLINE bool EncodeRange(const uint8_t* x, size_t blocks, GgufBatch& batch, uint8_t* y) {
  constexpr int kLargest = (1 << kBits) - 1;
  const DF df;
  const DI di;
  ExtremesOf<kGguf, false>(x, blocks, MinOp(), batch.low);
  ExtremesOf<kGguf, false>(x, blocks, MaxOp(), batch.high);
  for (size_t b = 0; b < blocks; ++b) {
    if (batch.low[b] != 0 && batch.high[b] != 0) continue;
    float values[kGguf];
    std::memcpy(values, x + b * sizeof(values), sizeof(values));
    const float zero = rules::ZeroOf(values);
    if (batch.low[b] == 0) batch.low[b] = zero;
    if (batch.high[b] == 0) batch.high[b] = zero;
  }
  bool too_large = MakeScales(
      blocks,
      [&](size_t b) HWY_ATTR {
        const V range = hn::Sub(hn::Load(df, batch.high + b), hn::Load(df, batch.low + b));
        return hn::Div(range, hn::Set(df, static_cast<float>(kLargest)));
      },
      0.5f, batch);
  for (size_t b = 0; b < blocks; b += N) {
    too_large |= PutHalves(hn::Load(df, batch.low + b), batch.minimum + b);
  }
  CodesOf<kGguf>(
      x, blocks,
      [&](V v, size_t b) HWY_ATTR {
        const V q = hn::Mul(hn::Sub(v, hn::Set(df, batch.low[b])), hn::Set(df, batch.inverse[b]));
        const I code = hn::ConvertTo(di, hn::Add(q, hn::Set(df, batch.bias[b])));
        return hn::Min(code, hn::Set(di, kLargest));
      },
      batch.codes);
  PutBlocks<true, kBits>(batch, blocks, y);
  return too_large;
}

HWY_NOINLINE bool EncodeMxfp4(const uint8_t* x, size_t blocks, GgufBatch& batch, uint8_t* y) {
  const DF df;
  const DI di;
  ExtremesOf<kGguf, true>(x, blocks, MaxOp(), batch.high);
  static const std::array<uint8_t, 256> kSteps = [] {
    std::array<uint8_t, 256> steps = {};
    for (int k = -126; k <= 128; ++k) {
      steps[static_cast<size_t>(k + 126)] = static_cast<uint8_t>(rules::Log2Steps(k));
    }
    return steps;
  }();
  const auto steps_of = [](int k) { return kSteps[static_cast<size_t>(k + 126)]; };
  uint8_t exponents[kGgufBatch];
  for (size_t b = 0; b < blocks; ++b) {
    exponents[b] = rules::GgufExponentBy(batch.high[b], steps_of);
    batch.inverse[b] = rules::GgufUnit(exponents[b]);
  }
  CodesOf<kGguf>(
      x, blocks,
      [&](V v, size_t b) HWY_ATTR {
        // The number of midpoints between values that are below: ties go towards 0.
        const V unit = hn::Set(df, batch.inverse[b]);
        const V magnitude = hn::Abs(v);
        I code = hn::Zero(di);
        for (const float middle : {0.5f, 1.5f, 2.5f, 3.5f, 5.0f, 7.0f, 10.0f}) {
          const auto above = hn::Gt(magnitude, hn::Mul(unit, hn::Set(df, middle)));
          code = hn::Sub(code, hn::VecFromMask(di, hn::RebindMask(di, above)));
        }
        // Values that overflow have the largest distance.
        code = hn::Min(code, hn::Set(di, exponents[b] == 253 ? 5 : 7));
        const I sign = hn::And(hn::BroadcastSignBit(hn::BitCast(di, v)), hn::Set(di, 8));
        return hn::Or(code, hn::IfThenZeroElse(hn::Eq(code, hn::Zero(di)), sign));
      },
      batch.codes);
  for (size_t b = 0; b < blocks; ++b) {
    y[0] = exponents[b];
    PackBlock(batch.codes + b * kGguf, y + 1);
    y += 1 + kGguf / 2;
  }
  return false;
}

template <GgufBlock kType, size_t kBytes>
bool Gguf(const uint8_t* x, size_t blocks, uint8_t* y) {
  GgufBatch batch = {};
  bool too_large = false;
  for (size_t done = 0; done < blocks; done += kGgufBatch) {
    const size_t some = std::min(kGgufBatch, blocks - done);
    const auto encode = [] {
      switch (kType) {
        case GgufBlock::kQ8_0:
          return EncodeQ8;
        case GgufBlock::kQ4_0:
          return EncodeFromExtreme<4>;
        case GgufBlock::kQ4_1:
          return EncodeRange<4>;
        case GgufBlock::kQ5_0:
          return EncodeFromExtreme<5>;
        case GgufBlock::kQ5_1:
          return EncodeRange<5>;
        case GgufBlock::kMxfp4:
          return EncodeMxfp4;
      }
    }();
    too_large |= encode(x + done * kGguf * sizeof(float), some, batch, y + done * kBytes);
  }
  return too_large;
}

void FillGguf(KernelTable& table) {
#define QUANTD_GGUF(block, bytes) \
  table.gguf[static_cast<size_t>(GgufBlock::block)] = Gguf<GgufBlock::block, bytes>;
#include "kernels/kernels.inc"
}

}  // namespace HWY_NAMESPACE
}  // namespace quantd
HWY_AFTER_NAMESPACE();
#endif
