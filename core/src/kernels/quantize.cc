// Quantize to integers.
#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/quantize.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
#include "kernels/quantize-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quantd {
namespace HWY_NAMESPACE {

// Integers of 8 bits or fewer, one byte a code, with any bounds. Within, codes are in [0, 255]: of
// signed types 128 is added with the zero point and taken off at the end.
// kWhole: the bounds are those of UINT8 or INT8, which packing keeps by itself.
template <bool kWhole>
struct Integer8 {
  static constexpr size_t kCodeBytes = 1;
  static constexpr bool kIsShort = true;

  explicit HWY_INLINE Integer8(const QuantizeTile& tile) {
    const int32_t bias = tile.minimum < 0 ? 128 : 0;
    bias_ = hn::Set(DI16(), static_cast<int16_t>(bias));
    sign_ = hn::Set(DU8(), static_cast<uint8_t>(bias));
    minimum_ = hn::Set(DU8(), static_cast<uint8_t>(tile.minimum + bias));
    maximum_ = hn::Set(DU8(), static_cast<uint8_t>(tile.maximum + bias));
  }

  struct Points {
    I16 ab;
    I16 cd;
  };
  HWY_INLINE Points MakePoints(V z0, V z1, V z2, V z3) const {
    return {hn::Add(PackInt16(RoundToInt(z0), RoundToInt(z1)), bias_),
            hn::Add(PackInt16(RoundToInt(z2), RoundToInt(z3)), bias_)};
  }

  // Rounded quotients, saturated to int16. NaN is its lowest, and so gives the minimum.
  struct Rounded {
    I16 ab;
    I16 cd;
  };
  static HWY_INLINE Rounded Round(V q0, V q1, V q2, V q3) {
    return {PackInt16(RoundToInt(q0), RoundToInt(q1)), PackInt16(RoundToInt(q2), RoundToInt(q3))};
  }

  template <bool kStream>
  HWY_INLINE void StoreRounded(Rounded rounded, const Points& points, uint8_t* y) const {
    const I16 ab = hn::SaturatedAdd(rounded.ab, points.ab);
    const I16 cd = hn::SaturatedAdd(rounded.cd, points.cd);
    U8 codes = PackBytes(ab, cd);
    if constexpr (!kWhole) codes = hn::Min(hn::Max(codes, minimum_), maximum_);
    codes = hn::Xor(codes, sign_);
    if constexpr (kStream) {
      hn::Stream(codes, DU8(), y);
    } else {
      hn::StoreU(codes, DU8(), y);
    }
  }

  // The clamp leaves what the zero point can bring into the range, which is within 255.
  template <bool kStream>
  HWY_INLINE void Store(V q0, V q1, V q2, V q3, const Points& points, uint8_t* y) const {
    const V low = hn::Set(DF(), -600.0f);
    const V high = hn::Set(DF(), 600.0f);
    StoreRounded<kStream>(Round(ClampNanLow(q0, low, high), ClampNanLow(q1, low, high),
                                ClampNanLow(q2, low, high), ClampNanLow(q3, low, high)),
                          points, y);
  }

 private:
  I16 bias_;
  U8 sign_;
  U8 minimum_;
  U8 maximum_;
};

// 16-bit integers. The clamp comes before the conversion, at bounds less the zero point, all of
// which are exact in FLOAT.
struct Integer16 {
  static constexpr size_t kCodeBytes = 2;
  static constexpr bool kIsShort = true;

  explicit HWY_INLINE Integer16(const QuantizeTile& tile)
      : minimum_(hn::Set(DF(), static_cast<float>(tile.minimum))),
        maximum_(hn::Set(DF(), static_cast<float>(tile.maximum))) {}

  struct Points {
    V z0, z1, z2, z3;
  };
  HWY_INLINE Points MakePoints(V z0, V z1, V z2, V z3) const { return {z0, z1, z2, z3}; }

  template <bool kStream>
  HWY_INLINE void Store(V q0, V q1, V q2, V q3, const Points& points, uint8_t* y) const {
    const DU16 d16;
    const auto first = PackLow16(Integer(q0, points.z0), Integer(q1, points.z1));
    const auto second = PackLow16(Integer(q2, points.z2), Integer(q3, points.z3));
    uint16_t* out = As<uint16_t>(y);
    if constexpr (kStream) {
      hn::Stream(first, d16, out);
      hn::Stream(second, d16, out + 2 * N);
    } else {
      hn::StoreU(first, d16, out);
      hn::StoreU(second, d16, out + 2 * N);
    }
  }

 private:
  HWY_INLINE U Integer(V q, V zero_point) const {
    const V bounded = ClampNanLow(q, hn::Sub(minimum_, zero_point), hn::Sub(maximum_, zero_point));
    return hn::BitCast(DU(), hn::Add(RoundToInt(bounded), RoundToInt(zero_point)));
  }

  V minimum_;
  V maximum_;
};

namespace {

// Rows of the list with another encoder are in quantize_floats.cc.
template <Division kDivision, Encoder kEncoder>
void Set(KernelTable& table) {
  if constexpr (kEncoder == Encoder::kInteger8 && kDivision == Division::kReciprocal) {
    // Worth a second copy of the loops: 20 instructions a block, not 22.
    SetQuantize<kDivision, kEncoder, Integer8<false>, Integer8<true>>(table);
  } else if constexpr (kEncoder == Encoder::kInteger8) {
    SetQuantize<kDivision, kEncoder, Integer8<false>>(table);
  } else if constexpr (kEncoder == Encoder::kInteger16) {
    SetQuantize<kDivision, kEncoder, Integer16>(table);
  }
}

}  // namespace

void FillQuantize(KernelTable& table) {
#define QUANTD_QUANTIZE(division, encoder) Set<Division::division, Encoder::encoder>(table);
#include "kernels/kernels.inc"
}

}  // namespace HWY_NAMESPACE
}  // namespace quantd
HWY_AFTER_NAMESPACE();
#endif
