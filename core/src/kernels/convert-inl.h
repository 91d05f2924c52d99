// FLOAT16 and BFLOAT16 in vectors. Included once per target.
#if defined(QUANTD_CONVERT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUANTD_CONVERT_INL_H_
#undef QUANTD_CONVERT_INL_H_
#else
#define QUANTD_CONVERT_INL_H_
#endif

#include "kernels/pack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quantd {
namespace HWY_NAMESPACE {

using DF16 = hn::Rebind<hwy::float16_t, DF>;

// Rounds to FLOAT16 and back; half to even. A NaN keeps its sign.
HWY_INLINE V RoundToFloat16(V v) { return hn::PromoteTo(DF(), hn::DemoteTo(DF16(), v)); }

// The upper 16 bits of the result are the BFLOAT16 nearest to v, half to even; the lower bits are
// unspecified. Highway 1.0.3 truncates. A NaN becomes the quiet NaN of the same sign, because
// rounding its payload could carry into infinity.
HWY_INLINE U Bfloat16Bits(V v) {
  const DU du;
  const U bits = hn::BitCast(du, v);
  const U odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
  const U rounded = hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7FFF)));
  const U nan = hn::Or(hn::And(bits, hn::Set(du, 0x80000000u)), hn::Set(du, 0x7FC00000u));
  return hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(v)), nan, rounded);
}

HWY_INLINE V RoundToBfloat16(V v) {
  return hn::BitCast(DF(), hn::And(Bfloat16Bits(v), hn::Set(DU(), 0xFFFF0000u)));
}

}  // namespace HWY_NAMESPACE
}  // namespace quantd
HWY_AFTER_NAMESPACE();

#endif  // QUANTD_CONVERT_INL_H_
