// Quantize to FLOAT8, FLOAT6 and FLOAT4.
#include "kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/quantize_floats.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
#include "kernels/quantize-inl.h"
#include "types/small_float.h"

HWY_BEFORE_NAMESPACE();
namespace quantd {
namespace HWY_NAMESPACE {

template <Encoder kEncoder>
struct SmallFloat {
  static constexpr size_t kCodeBytes = 1;
  static constexpr bool kIsShort = false;
  static constexpr FloatFormat kFormat = FormatOf(TypeOf(kEncoder));
  static constexpr bool kHasNan = kFormat.nan != 0;  // otherwise it always saturates

  explicit HWY_INLINE SmallFloat(const QuantizeTile& tile)
      : overflow_(hn::Set(DU(), tile.saturate || !kHasNan ? kFormat.largest : kFormat.overflow)),
        add_(tile.zero_point != nullptr) {}

  struct Points {
    V z0, z1, z2, z3;
  };
  // Without a zero point -0 is added, which changes nothing; adding +0 would lose a -0.
  HWY_INLINE Points MakePoints(V z0, V z1, V z2, V z3) const {
    if (add_) return {z0, z1, z2, z3};
    const V none = hn::Set(DF(), -0.0f);
    return {none, none, none, none};
  }

  HWY_INLINE V Prepare(V z) const { return z; }
  template <size_t kVectors>
  HWY_INLINE Points MakeRunPoints(V z0, V z1, V z2, V z3) const {
    return MakePoints(z0, z1, z2, z3);
  }

  HWY_INLINE void Store(V q0, V q1, V q2, V q3, const Points& points, bool stream,
                        uint8_t* y) const {
    const I16 ab = PackInt16(Code(q0, points.z0), Code(q1, points.z1));
    const I16 cd = PackInt16(Code(q2, points.z2), Code(q3, points.z3));
    const U8 codes = PackBytes(ab, cd);
    Put(codes, DU8(), stream, y);
  }

 private:
  HWY_INLINE I Code(V v, V zero_point) const {
    const DF df;
    const DU du;
    if constexpr (!kHasNan) v = hn::Add(v, zero_point);
    const V magnitude = hn::Abs(v);
    const U bits = hn::BitCast(du, magnitude);
    const U sign = hn::ShiftRight<31>(hn::BitCast(du, v));

    // Normal codes: round the mantissa half to even, let the carry move into the exponent, and
    // rebias.
    constexpr int kShift = 23 - kFormat.mantissa_bits;
    const U odd = hn::And(hn::ShiftRight<kShift>(bits), hn::Set(du, 1));
    const U rounded = hn::Add(bits, hn::Add(odd, hn::Set(du, (1u << (kShift - 1)) - 1)));
    const U normal =
        hn::Sub(hn::ShiftRight<kShift>(rounded),
                hn::Set(du, static_cast<uint32_t>(127 - kFormat.bias) << kFormat.mantissa_bits));
    // Subnormal codes are multiples of 2^(1 - bias - mantissa bits): a sum with 2^23 of them rounds
    // to whole multiples.
    constexpr uint32_t kSteps =
        static_cast<uint32_t>(127 + 23 + 1 - kFormat.bias - kFormat.mantissa_bits) << 23;
    const V steps = hn::BitCast(df, hn::Set(du, kSteps));
    const U subnormal = hn::Sub(hn::BitCast(du, hn::Add(magnitude, steps)), hn::Set(du, kSteps));
    constexpr uint32_t kSmallestNormal = static_cast<uint32_t>(127 + 1 - kFormat.bias) << 23;
    const DI di;
    const auto is_subnormal =
        hn::Lt(hn::BitCast(di, bits), hn::Set(di, static_cast<int32_t>(kSmallestNormal)));
    U code = hn::IfThenElse(hn::RebindMask(du, is_subnormal), subnormal, normal);

    const auto is_overflow =
        hn::Gt(hn::BitCast(di, code), hn::Set(di, static_cast<int32_t>(kFormat.largest)));
    code = hn::IfThenElse(hn::RebindMask(du, is_overflow), overflow_, code);
    const auto is_nan = hn::RebindMask(du, hn::Gt(hn::BitCast(di, bits), hn::Set(di, 0x7F800000)));
    // If the format has no NaN, it becomes 0 of the opposite sign.
    constexpr uint32_t kNan = kHasNan ? kFormat.nan : 1u << (kFormat.bits - 1);
    code = hn::IfThenElse(is_nan, hn::Set(du, kNan), code);
    const U sign_bit = hn::ShiftLeft<kFormat.bits - 1>(sign);
    if constexpr (!kHasNan) {
      code = hn::Xor(code, sign_bit);
    } else if constexpr (kFormat.signed_specials) {
      code = hn::Or(code, sign_bit);
    } else {
      // The sign is not set for 0, nor for NaN, which already has the code of -0.
      const auto has_sign = hn::RebindMask(
          du, hn::Gt(hn::BitCast(di, hn::And(code, hn::Set(du, 0x7F))), hn::Zero(di)));
      code = hn::Or(code, hn::IfThenElseZero(has_sign, sign_bit));
    }
    return hn::BitCast(di, code);
  }

  U overflow_;
  bool add_;
};

namespace {

// Integer encoders of the list are in quantize_integers.cc.
template <Division kDivision, Encoder kEncoder>
void Set(KernelTable& table) {
  if constexpr (kEncoder != Encoder::kInteger8 && kEncoder != Encoder::kInteger16) {
    SetQuantize<kDivision, kEncoder, SmallFloat<kEncoder>>(table);
  }
}

}  // namespace

void FillQuantizeFloats(KernelTable& table) {
#define QUANTD_QUANTIZE(division, encoder) Set<Division::division, Encoder::encoder>(table);
#include "kernels/kernels.inc"
}

}  // namespace HWY_NAMESPACE
}  // namespace quantd
HWY_AFTER_NAMESPACE();
#endif
