// Converts codes to floats, one vector at a time. Included once per target.
#if defined(QUANTD_DECODE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUANTD_DECODE_INL_H_
#undef QUANTD_DECODE_INL_H_
#else
#define QUANTD_DECODE_INL_H_
#endif

#include "kernels/kernel_table.h"
#include "kernels/pack-inl.h"
#include "types/small_float.h"

HWY_BEFORE_NAMESPACE();
namespace quantd {
namespace HWY_NAMESPACE {

template <Decoder kDecoder>
inline constexpr size_t kCodeBytes =
    kDecoder == Decoder::kInt32                                   ? 4
    : kDecoder == Decoder::kUint16 || kDecoder == Decoder::kInt16 ? 2
                                                                  : 1;

// Loads N codes of a narrower type as int32.
template <typename T>
HWY_INLINE I LoadCodes(const uint8_t* x) {
  const hn::Rebind<T, DF> narrow;
  return hn::PromoteTo(DI(), hn::LoadU(narrow, As<T>(x)));
}

// The value of a FLOAT8, FLOAT6 or FLOAT4 code, by arithmetic on bits: a gather from a table is
// slower, and a multiplication by 2^k would have FLOAT denormals, which some CPUs handle in
// microcode.
template <Decoder kDecoder>
HWY_INLINE V DecodeSmallFloat(I code) {
  constexpr FloatFormat kFormat = FormatOf(TypeOf(kDecoder));
  constexpr uint32_t kSignBit = 1u << (kFormat.bits - 1);
  const DF df;
  const DU du;
  const DI di;
  const I magnitude = hn::And(code, hn::Set(di, static_cast<int32_t>(kSignBit - 1)));
  const U sign =
      hn::ShiftLeft<32 - kFormat.bits>(hn::And(hn::BitCast(du, code), hn::Set(du, kSignBit)));

  const I normal = hn::Add(hn::ShiftLeft<23 - kFormat.mantissa_bits>(magnitude),
                           hn::Set(di, (127 - kFormat.bias) << 23));
  constexpr uint32_t kStep = static_cast<uint32_t>(127 + 1 - kFormat.bias - kFormat.mantissa_bits)
                             << 23;
  const V subnormal = hn::Mul(hn::ConvertTo(df, magnitude), hn::BitCast(df, hn::Set(du, kStep)));
  const auto is_subnormal = hn::Lt(magnitude, hn::Set(di, 1 << kFormat.mantissa_bits));
  V value = hn::IfThenElse(hn::RebindMask(df, is_subnormal), subnormal, hn::BitCast(df, normal));

  const V nan = hn::BitCast(df, hn::Set(du, 0x7FC00000u));
  if constexpr (kDecoder == Decoder::kFloat8E5M2) {
    // Like FLOAT16: 7C is infinite, 7D to 7F are NaN.
    const V infinity = hn::BitCast(df, hn::Set(du, 0x7F800000u));
    value =
        hn::IfThenElse(hn::RebindMask(df, hn::Eq(magnitude, hn::Set(di, 0x7C))), infinity, value);
    value = hn::IfThenElse(hn::RebindMask(df, hn::Gt(magnitude, hn::Set(di, 0x7C))), nan, value);
  } else if constexpr (kDecoder == Decoder::kFloat8E4M3Fn) {
    value = hn::IfThenElse(hn::RebindMask(df, hn::Eq(magnitude, hn::Set(di, 0x7F))), nan, value);
  } else if constexpr (!kFormat.signed_specials) {
    const auto is_nan = hn::Eq(hn::And(code, hn::Set(di, 0xFF)), hn::Set(di, 0x80));
    value = hn::IfThenElse(hn::RebindMask(df, is_nan), nan, value);
  }
  return hn::BitCast(df, hn::Or(hn::BitCast(du, value), sign));
}

// INT32: code - zero point is exact in 64-bit integers, and also in double; it is rounded once.
HWY_INLINE V DifferenceOfInt32(I code, I zero_point) {
  using D64 = hn::Repartition<double, DF>;
  const hn::Half<DF> half;
  const hn::Half<DI> half_int;
  const D64 d64;
  const auto low = hn::Sub(hn::PromoteTo(d64, hn::LowerHalf(half_int, code)),
                           hn::PromoteTo(d64, hn::LowerHalf(half_int, zero_point)));
  const auto high = hn::Sub(hn::PromoteTo(d64, hn::UpperHalf(half_int, code)),
                            hn::PromoteTo(d64, hn::UpperHalf(half_int, zero_point)));
  return hn::Combine(DF(), hn::DemoteTo(half, high), hn::DemoteTo(half, low));
}

// N codes minus their zero points. FLOAT8 has no zero points; those of mini floats are codes.
template <Decoder kDecoder>
HWY_INLINE V Difference(const uint8_t* x, I zero_point) {
  const DF df;
  if constexpr (kDecoder == Decoder::kInt32) {
    return DifferenceOfInt32(hn::LoadU(DI(), As<int32_t>(x)), zero_point);
  } else if constexpr (kDecoder == Decoder::kUint8) {
    return hn::Sub(hn::ConvertTo(df, LoadCodes<uint8_t>(x)), hn::ConvertTo(df, zero_point));
  } else if constexpr (kDecoder == Decoder::kInt8) {
    return hn::Sub(hn::ConvertTo(df, LoadCodes<int8_t>(x)), hn::ConvertTo(df, zero_point));
  } else if constexpr (kDecoder == Decoder::kUint16) {
    return hn::Sub(hn::ConvertTo(df, LoadCodes<uint16_t>(x)), hn::ConvertTo(df, zero_point));
  } else if constexpr (kDecoder == Decoder::kInt16) {
    return hn::Sub(hn::ConvertTo(df, LoadCodes<int16_t>(x)), hn::ConvertTo(df, zero_point));
  } else if constexpr (IsMiniFloat(kDecoder)) {
    return hn::Sub(DecodeSmallFloat<kDecoder>(LoadCodes<uint8_t>(x)),
                   DecodeSmallFloat<kDecoder>(zero_point));
  } else {
    return DecodeSmallFloat<kDecoder>(LoadCodes<uint8_t>(x));
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace quantd
HWY_AFTER_NAMESPACE();

#endif  // QUANTD_DECODE_INL_H_
