// bitsandbytes' blocks, and the largest magnitude in elements of any layout.
#include <algorithm>
#include <array>
#include <cstring>

#include "kernels/simd_targets.h"
#include "rules/layouts.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/bnb.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
#include "kernels/blocks-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quantd {
namespace HWY_NAMESPACE {

// Packs pairs of 4-bit codes, the first in the high half of a byte.
HWY_INLINE void PackHighFirst(const uint8_t* codes, size_t size, uint8_t* y) {
  const DU16 du16;
  const auto pairs = [&](size_t i) HWY_ATTR {
    const auto v = hn::BitCast(du16, hn::LoadU(DU8(), codes + i));
    const auto byte = hn::Or(hn::ShiftLeft<4>(v), hn::ShiftRight<8>(v));
    return hn::BitCast(DI16(), hn::And(byte, hn::Set(du16, 0xFF)));
  };
  for (size_t i = 0; i < size; i += 8 * N) {
    hn::StoreU(PackOrderedBytes(pairs(i), pairs(i + 4 * N)), DU8(), y + i / 2);
  }
}

template <BnbTable kTable>
void Bnb(const uint8_t* x, size_t blocks, float* absmax, uint8_t* y) {
  constexpr size_t kBlock = rules::kBnbBlock;
  constexpr size_t kBlocks = kBatch / kBlock;
  constexpr rules::Table4 kCodes = kTable == BnbTable::kNf4 ? rules::kNf4Table : rules::kFp4Table;
  const DF df;
  const DI di;
  std::array<float, 15> middles;
  for (int i = 0; i < 15; ++i) middles[static_cast<size_t>(i)] = kCodes.Middle(i);
  alignas(64) float largest[kBlocks] = {};
  alignas(64) float inverse[kBlocks] = {};
  alignas(64) uint8_t codes[kBatch];
  alignas(64) uint8_t packed[kBatch / 2];
  for (size_t done = 0; done < blocks; done += kBlocks) {
    const uint8_t* const at = x + done * kBlock * sizeof(float);
    const size_t some = std::min(kBlocks, blocks - done);
    ExtremesOf<kBlock, true>(at, some, MaxOp(), largest);
    for (size_t b = 0; b < some; b += N) {
      const V bounded = hn::Max(hn::Load(df, largest + b), hn::Set(df, rules::kLeastAbsmax));
      hn::Store(hn::Div(hn::Set(df, 1.0f), bounded), df, inverse + b);
    }
    // The clamp to [-1, 1] changes no comparison.
    CodesOf<kBlock>(
        at, some,
        [&](V v, size_t b) HWY_ATTR {
          const V value = hn::Mul(v, hn::Set(df, inverse[b]));
          I below = hn::Zero(di);
          for (const float middle : middles) {
            const auto is_below = hn::Lt(hn::Set(df, middle), value);
            below = hn::Sub(below, hn::VecFromMask(di, hn::RebindMask(di, is_below)));
          }
          return below;
        },
        codes);
    if constexpr (kTable == BnbTable::kFp4) {
      const auto order = hn::LoadDup128(DU8(), kCodes.order);
      for (size_t i = 0; i < some * kBlock; i += 4 * N) {
        const U8 counts = hn::Load(DU8(), codes + i);
        hn::Store(hn::TableLookupBytes(order, counts), DU8(), codes + i);
      }
    }
    PackHighFirst(codes, some * kBlock, packed);
    std::memcpy(y + done * kBlock / 2, packed, some * kBlock / 2);
    std::copy_n(largest, some, absmax + done);
  }
}

// ---- Largest magnitudes -------------------------------------------------------------------------

// For elements of 16 or 32 bits, which sort like unsigned integers without the sign.
template <class D>
HWY_INLINE uint32_t LargestOfLanes(D, hn::Vec<D> v) {
  const DU du;
  U wide = hn::BitCast(du, v);
  if constexpr (sizeof(hn::TFromD<D>) == 2) {
    wide = hn::Max(hn::And(wide, hn::Set(du, 0xFFFF)), hn::ShiftRight<16>(wide));
  }
  return hn::GetLane(hn::MaxOfLanes(du, wide));
}

template <class D>
uint32_t Largest(const uint8_t* x, size_t rows, size_t size, size_t stride) {
  using T = hn::TFromD<D>;
  constexpr size_t kLanes = 4 * N / sizeof(T);
  constexpr T kMagnitude = static_cast<T>(~T{0}) >> 1;
  const D d;
  const auto mask = hn::Set(d, kMagnitude);
  if (size < kLanes) {
    T largest = 0;
    for (size_t row = 0; row < rows; ++row) {
      for (size_t i = 0; i < size; ++i) {
        T bits;
        std::memcpy(&bits, x + row * stride + i * sizeof(T), sizeof(T));
        largest = std::max<T>(largest, bits & kMagnitude);
      }
    }
    return largest;
  }
  auto a = hn::Zero(d), b = a, c = a, e = a;
  for (size_t row = 0; row < rows; ++row) {
    const uint8_t* const bytes = x + row * stride;
    const auto load = [&](size_t i) HWY_ATTR {
      return hn::And(hn::LoadU(d, As<T>(bytes + i * sizeof(T))), mask);
    };
    size_t i = 0;
    for (; i + 4 * kLanes <= size; i += 4 * kLanes) {
      FetchNear<4 * kLanes * sizeof(T)>(bytes + i * sizeof(T));
      a = hn::Max(a, load(i));
      b = hn::Max(b, load(i + kLanes));
      c = hn::Max(c, load(i + 2 * kLanes));
      e = hn::Max(e, load(i + 3 * kLanes));
    }
    for (; i + kLanes <= size; i += kLanes) a = hn::Max(a, load(i));
    // The last vector may overlap the previous one.
    if (i != size) b = hn::Max(b, load(size - kLanes));
  }
  return LargestOfLanes(d, hn::Max(hn::Max(a, b), hn::Max(c, e)));
}

void FillBnb(KernelTable& table) {
#define QUANTD_BNB(name) table.bnb[static_cast<size_t>(BnbTable::name)] = Bnb<BnbTable::name>;
#include "kernels/kernels.inc"
  table.largest16 = Largest<DU16>;
  table.largest32 = Largest<DU>;
}

}  // namespace HWY_NAMESPACE
}  // namespace quantd
HWY_AFTER_NAMESPACE();
#endif
