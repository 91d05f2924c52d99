// Conversions: the floating-point types, packed codes.
#include <cstring>

#include "kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/convert.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
#include "kernels/convert-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quantd {
namespace HWY_NAMESPACE {

// A conversion is a struct with kElements (elements of a step), kIn and kOut (bytes of a step) and
// Step(x, y).
template <class Conversion>
void Convert(const uint8_t* x, size_t size, uint8_t* y) {
  constexpr size_t kElements = Conversion::kElements;
  constexpr size_t kIn = Conversion::kIn;
  constexpr size_t kOut = Conversion::kOut;
  const size_t steps = size / kElements;
  // Some steps are three instructions: a loop of them takes a quarter longer if it happens to cross
  // a boundary of 64 bytes.
#pragma GCC unroll 4
  for (size_t step = 0; step < steps; ++step) Conversion::Step(x + step * kIn, y + step * kOut);
  const size_t rest = size % kElements;
  if (rest == 0) return;
  // A step on the stack. Missing elements are 0, so that unused packed bits are 0.
  alignas(64) uint8_t in[kIn] = {};
  alignas(64) uint8_t out[kOut];
  std::memcpy(in, x + steps * kIn, (rest * kIn + kElements - 1) / kElements);
  Conversion::Step(in, out);
  std::memcpy(y + steps * kOut, out, (rest * kOut + kElements - 1) / kElements);
}

struct Float16ToFloat {
  static constexpr size_t kElements = N, kIn = 2 * N, kOut = 4 * N;
  static HWY_INLINE void Step(const uint8_t* x, uint8_t* y) {
    const DF16 narrow;
    const V v = hn::PromoteTo(DF(), hn::LoadU(narrow, As<hwy::float16_t>(x)));
    hn::StoreU(v, DF(), As<float>(y));
  }
};

struct Bfloat16ToFloat {
  static constexpr size_t kElements = N, kIn = 2 * N, kOut = 4 * N;
  static HWY_INLINE void Step(const uint8_t* x, uint8_t* y) {
    const hn::Rebind<uint16_t, DF> narrow;
    const U bits = hn::PromoteTo(DU(), hn::LoadU(narrow, As<uint16_t>(x)));
    hn::StoreU(hn::ShiftLeft<16>(bits), DU(), As<uint32_t>(y));
  }
};

struct Int32ToFloat {
  static constexpr size_t kElements = N, kIn = 4 * N, kOut = 4 * N;
  static HWY_INLINE void Step(const uint8_t* x, uint8_t* y) {
    const V v = hn::ConvertTo(DF(), hn::LoadU(DI(), As<int32_t>(x)));
    hn::StoreU(v, DF(), As<float>(y));
  }
};

struct FloatToFloat16 {
  static constexpr size_t kElements = N, kIn = 4 * N, kOut = 2 * N;
  static HWY_INLINE void Step(const uint8_t* x, uint8_t* y) {
    const DF16 narrow;
    const DU du;
    V v = hn::LoadU(DF(), As<float>(x));
    // Only the sign of a NaN is kept, so that every target has the same result.
    const U nan =
        hn::Or(hn::And(hn::BitCast(du, v), hn::Set(du, 0x80000000u)), hn::Set(du, 0x7FC00000u));
    v = hn::IfThenElse(hn::IsNaN(v), hn::BitCast(DF(), nan), v);
    hn::StoreU(hn::DemoteTo(narrow, v), narrow, As<hwy::float16_t>(y));
  }
};

struct FloatToBfloat16 {
  static constexpr size_t kElements = 2 * N, kIn = 8 * N, kOut = 4 * N;
  static HWY_INLINE void Step(const uint8_t* x, uint8_t* y) {
    const DF df;
    const U a = hn::ShiftRight<16>(Bfloat16Bits(hn::LoadU(df, As<float>(x))));
    const U b = hn::ShiftRight<16>(Bfloat16Bits(hn::LoadU(df, As<float>(x) + N)));
    hn::StoreU(PackLow16(a, b), DU16(), As<uint16_t>(y));
  }
};

// Combines kBits of each code as the digits of one number.
template <int kBits>
HWY_INLINE U8 LoadDigits(const uint8_t* x) {
  return hn::And(hn::LoadU(DU8(), x), hn::Set(DU8(), (1 << kBits) - 1));
}

// Four codes of 6 bits fill three bytes: 12 of 16 bytes, which are then moved together.
HWY_INLINE U DenseLanes(U lanes) {
  alignas(16) static constexpr uint8_t kThreeOfFour[16] = {0,  1,  2,  4,  5,    6,    8,    9,
                                                           10, 12, 13, 14, 0x80, 0x80, 0x80, 0x80};
  const hn::Repartition<uint8_t, DU> du8;
  const auto order = hn::LoadDup128(du8, kThreeOfFour);
  return hn::BitCast(DU(), hn::TableLookupBytesOr0(hn::BitCast(du8, lanes), order));
}

// Indices of 32-bit lanes, for either end of a step of 3 N bytes in a vector of 4 N.
struct SixBitLanes {
  alignas(64) int32_t front[N];   // packing: the dense lanes, first
  alignas(64) int32_t back[N];    // packing: the same, last
  alignas(64) int32_t carry[N];   // packing: the last quarter of `front`, first
  alignas(64) int32_t spread[N];  // unpacking: three lanes for each 128 bits, from the first on
  alignas(64) int32_t behind[N];  // unpacking: the same, from a quarter on

  constexpr SixBitLanes() : front(), back(), carry(), spread(), behind() {
    constexpr int kLanes = static_cast<int>(N);
    constexpr int kDense = kLanes / 4 * 3;
    for (int i = 0; i < kLanes; ++i) {
      const auto dense = [](int k) { return k / 3 * 4 + k % 3; };
      front[i] = i < kDense ? dense(i) : 3;
      back[i] = i < kLanes - kDense ? 3 : dense(i - (kLanes - kDense));
      carry[i] = i < kLanes - kDense ? dense(2 * (kLanes - kDense) + i) : 3;
      spread[i] = i % 4 == 3 ? 0 : i / 4 * 3 + i % 4;
      behind[i] = i % 4 == 3 ? 0 : kLanes - kDense + i / 4 * 3 + i % 4;
    }
  }
};
inline constexpr SixBitLanes kSixBitLanes;

HWY_INLINE U Lanes(U v, const int32_t* indices) {
  return hn::TableLookupLanes(v, hn::SetTableIndices(DU(), indices));
}

// Two vectors at a time: the second is stored together with the end of the first, so that nothing
// is written after them.
struct Pack6 {
  static constexpr size_t kElements = 8 * N, kIn = 8 * N, kOut = 6 * N;
  static HWY_INLINE void Step(const uint8_t* x, uint8_t* y) {
    const DU du;
    const U a = DenseLanes(Three(x));
    const U b = DenseLanes(Three(x + 4 * N));
    const U tail = hn::Or(Lanes(a, kSixBitLanes.carry), Lanes(b, kSixBitLanes.back));
    hn::StoreU(Lanes(a, kSixBitLanes.front), du, As<uint32_t>(y));
    hn::StoreU(tail, du, As<uint32_t>(y + 2 * N));
  }

 private:
  // Four codes in the lower 24 bits of each lane.
  static HWY_INLINE U Three(const uint8_t* x) {
    const DU du;
    const U pairs = hn::BitCast(du, PairSum<64>(LoadDigits<6>(x)));
    const U high = hn::And(hn::ShiftRight<4>(pairs), hn::Set(du, 0xFFF000));
    return hn::Or(hn::And(pairs, hn::Set(du, 0xFFF)), high);
  }
};

struct Unpack6 {
  static constexpr size_t kElements = 8 * N, kIn = 6 * N, kOut = 8 * N;
  static HWY_INLINE void Step(const uint8_t* x, uint8_t* y) {
    const DU du;
    const U a = hn::LoadU(du, As<uint32_t>(x));
    const U b = hn::LoadU(du, As<uint32_t>(x + 2 * N));
    hn::StoreU(Four(Lanes(a, kSixBitLanes.spread)), du, As<uint32_t>(y));
    hn::StoreU(Four(Lanes(b, kSixBitLanes.behind)), du, As<uint32_t>(y + 4 * N));
  }

 private:
  // 12 bytes of each 128 bits as 16 codes.
  static HWY_INLINE U Four(U packed) {
    alignas(16) static constexpr uint8_t kByThree[16] = {0, 1, 2, 0x80, 3, 4,  5,  0x80,
                                                         6, 7, 8, 0x80, 9, 10, 11, 0x80};
    const DU du;
    const hn::Repartition<uint8_t, DU> du8;
    const auto order = hn::LoadDup128(du8, kByThree);
    const U v = hn::BitCast(du, hn::TableLookupBytesOr0(hn::BitCast(du8, packed), order));
    return hn::Or(
        hn::Or(hn::And(v, hn::Set(du, 0x3F)), hn::And(hn::ShiftLeft<2>(v), hn::Set(du, 0x3F00))),
        hn::Or(hn::And(hn::ShiftLeft<4>(v), hn::Set(du, 0x3F0000)),
               hn::And(hn::ShiftLeft<6>(v), hn::Set(du, 0x3F000000))));
  }
};

struct Pack4 {
  static constexpr size_t kElements = 8 * N, kIn = 8 * N, kOut = 4 * N;
  static HWY_INLINE void Step(const uint8_t* x, uint8_t* y) {
    const I16 a = PairSum<16>(LoadDigits<4>(x));
    const I16 b = PairSum<16>(LoadDigits<4>(x + 4 * N));
    hn::StoreU(PackOrderedBytes(a, b), DU8(), y);
  }
};

struct Pack2 {
  static constexpr size_t kElements = 16 * N, kIn = 16 * N, kOut = 4 * N;
  static HWY_INLINE void Step(const uint8_t* x, uint8_t* y) {
    const I16 ab = PairSum<16>(NarrowBytes(Two(x), Two(x + 4 * N)));
    const I16 cd = PairSum<16>(NarrowBytes(Two(x + 8 * N), Two(x + 12 * N)));
    hn::StoreU(PackBytes(ab, cd), DU8(), y);
  }

 private:
  static HWY_INLINE I16 Two(const uint8_t* x) { return PairSum<4>(LoadDigits<2>(x)); }
};

// Sign-extends codes of `kBits` bits to 8 bits: (code ^ sign) - sign.
template <int kBits>
HWY_INLINE U8 ExtendSign(U8 codes) {
  const U8 sign = hn::Set(DU8(), 1 << (kBits - 1));
  return hn::Sub(hn::Xor(codes, sign), sign);
}

template <bool kSigned>
struct Unpack4 {
  static constexpr size_t kElements = 4 * N, kIn = 2 * N, kOut = 4 * N;
  static HWY_INLINE void Step(const uint8_t* x, uint8_t* y) {
    const DU16 du16;
    const hn::Rebind<uint8_t, DU16> narrow;
    const auto packed = hn::PromoteTo(du16, hn::LoadU(narrow, x));
    const auto pair = hn::And(hn::Or(packed, hn::ShiftLeft<4>(packed)), hn::Set(du16, 0x0F0F));
    const U8 codes = hn::BitCast(DU8(), pair);
    hn::StoreU(kSigned ? ExtendSign<4>(codes) : codes, DU8(), y);
  }
};

template <bool kSigned>
struct Unpack2 {
  static constexpr size_t kElements = 4 * N, kIn = N, kOut = 4 * N;
  static HWY_INLINE void Step(const uint8_t* x, uint8_t* y) {
    const DU du;
    const hn::Rebind<uint8_t, DU> narrow;
    const U packed = hn::PromoteTo(du, hn::LoadU(narrow, x));
    const U four = hn::And(hn::Or(hn::Or(packed, hn::ShiftLeft<6>(packed)),
                                  hn::Or(hn::ShiftLeft<12>(packed), hn::ShiftLeft<18>(packed))),
                           hn::Set(du, 0x03030303));
    const U8 codes = hn::BitCast(DU8(), four);
    hn::StoreU(kSigned ? ExtendSign<2>(codes) : codes, DU8(), y);
  }
};

void FillConvert(KernelTable& table) {
  table.float16_to_float = Convert<Float16ToFloat>;
  table.bfloat16_to_float = Convert<Bfloat16ToFloat>;
  table.int32_to_float = Convert<Int32ToFloat>;
  table.float_to_float16 = Convert<FloatToFloat16>;
  table.float_to_bfloat16 = Convert<FloatToBfloat16>;
  table.pack6 = Convert<Pack6>;
  table.pack4 = Convert<Pack4>;
  table.pack2 = Convert<Pack2>;
  table.unpack6 = Convert<Unpack6>;
  table.unpack_uint4 = Convert<Unpack4<false>>;
  table.unpack_int4 = Convert<Unpack4<true>>;
  table.unpack_uint2 = Convert<Unpack2<false>>;
  table.unpack_int2 = Convert<Unpack2<true>>;
}

}  // namespace HWY_NAMESPACE
}  // namespace quantd
HWY_AFTER_NAMESPACE();
#endif
