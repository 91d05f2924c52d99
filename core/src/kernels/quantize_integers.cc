// Quantize to integers.
#include "kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/quantize_integers.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
#include "kernels/quantize-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quantd {
namespace HWY_NAMESPACE {

// Integers of 8 bits or fewer, one byte per code, with any bounds. Codes are computed relative to
// the minimum, which is subtracted together with the zero point, so that packing clamps to it, and
// is added at the end. kWhole: packing also clamps to the maximum, because the bounds are those of
// UINT8 or INT8.
template <bool kWhole>
struct Integer8 {
  static constexpr size_t kCodeBytes = 1;
  static constexpr bool kIsShort = true;

  explicit HWY_INLINE Integer8(const QuantizeTile& tile) {
    bias_ = hn::Set(DI16(), static_cast<int16_t>(-tile.minimum));
    minimum_ = hn::Set(DU8(), static_cast<uint8_t>(tile.minimum));
    range_ = hn::Set(DU8(), static_cast<uint8_t>(tile.maximum - tile.minimum));
  }

  struct Points {
    I16 ab;
    I16 cd;
  };
  HWY_INLINE Points MakePoints(V z0, V z1, V z2, V z3) const {
    return {hn::Add(PackInt16(RoundToInt(z0), RoundToInt(z1)), bias_),
            hn::Add(PackInt16(RoundToInt(z2), RoundToInt(z3)), bias_)};
  }

  // Each value is in both halves of its lane, as int16 and with the bias.
  HWY_INLINE V Prepare(V z) const {
    const U point = hn::BitCast(DU(), RoundToInt(z));
    const U twice = hn::Or(hn::And(point, hn::Set(DU(), 0xFFFF)), hn::ShiftLeft<16>(point));
    return hn::BitCast(DF(), hn::Add(hn::BitCast(DI16(), twice), bias_));
  }
  template <size_t kVectors>
  HWY_INLINE Points MakeRunPoints(V p0, V p1, V p2, V p3) const {
    const DI16 d16;
    if constexpr (kVectors > 1) return {hn::BitCast(d16, p0), hn::BitCast(d16, p2)};
    // Pack order: the lower half of 128 bits belongs to the first vector.
    const hn::Repartition<double, DF> d64;
    const auto pair = [&](V a, V b) HWY_ATTR {
      return hn::BitCast(d16, hn::InterleaveLower(d64, hn::BitCast(d64, a), hn::BitCast(d64, b)));
    };
    return {pair(p0, p1), pair(p2, p3)};
  }

  // Stores rounded quotients, saturated to int16.
  HWY_INLINE void StoreRounded(I16 ab, I16 cd, const Points& points, bool stream,
                               uint8_t* y) const {
    U8 codes = PackBytes(hn::SaturatedAdd(ab, points.ab), hn::SaturatedAdd(cd, points.cd));
    if constexpr (!kWhole) codes = hn::Min(codes, range_);
    Put(hn::Add(codes, minimum_), DU8(), stream, y);
  }

  // The clamp keeps quotients that a zero point can bring into the range, which is within 255. NaN
  // becomes the lowest value, and so the minimum.
  HWY_INLINE void Store(V q0, V q1, V q2, V q3, const Points& points, bool stream,
                        uint8_t* y) const {
    const auto round = [](V a, V b) HWY_ATTR {
      const V low = hn::Set(DF(), -600.0f);
      const V high = hn::Set(DF(), 600.0f);
      return PackInt16(RoundToInt(ClampNanLow(a, low, high)),
                       RoundToInt(ClampNanLow(b, low, high)));
    };
    StoreRounded(round(q0, q1), round(q2, q3), points, stream, y);
  }

 private:
  I16 bias_;
  U8 minimum_;
  U8 range_;
};

// 16-bit integers. The clamp comes before the conversion, at bounds minus the zero point, which are
// all exact in FLOAT.
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

  HWY_INLINE V Prepare(V z) const { return z; }
  template <size_t kVectors>
  HWY_INLINE Points MakeRunPoints(V z0, V z1, V z2, V z3) const {
    return {z0, z1, z2, z3};
  }

  HWY_INLINE void Store(V q0, V q1, V q2, V q3, const Points& points, bool stream,
                        uint8_t* y) const {
    const DU16 d16;
    const auto first = PackLow16(Integer(q0, points.z0), Integer(q1, points.z1));
    const auto second = PackLow16(Integer(q2, points.z2), Integer(q3, points.z3));
    uint16_t* out = As<uint16_t>(y);
    Put(first, d16, stream, out);
    Put(second, d16, stream, out + 2 * N);
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

// Other encoders of the list are in quantize_floats.cc.
template <Division kDivision, Encoder kEncoder>
void Set(KernelTable& table) {
  if constexpr (kEncoder == Encoder::kInteger8 && kDivision == Division::kReciprocal) {
    // This is worth a second copy of the loops: 20 instructions per block instead of 21.
    SetQuantize<kDivision, kEncoder, Integer8<false>, Integer8<true>>(table);
  } else if constexpr (kEncoder == Encoder::kInteger8) {
    SetQuantize<kDivision, kEncoder, Integer8<false>>(table);
  } else if constexpr (kEncoder == Encoder::kInteger16) {
    SetQuantize<kDivision, kEncoder, Integer16>(table);
  }
}

}  // namespace

void FillQuantizeIntegers(KernelTable& table) {
#define QUANTD_QUANTIZE(division, encoder) Set<Division::division, Encoder::encoder>(table);
#include "kernels/kernels.inc"
}

}  // namespace HWY_NAMESPACE
}  // namespace quantd
HWY_AFTER_NAMESPACE();
#endif
