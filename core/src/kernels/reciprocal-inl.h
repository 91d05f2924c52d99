// 1 / scale as two floats, which the two fused multiply-adds need. Included once per
// target.
//
// Why two fused multiply-adds are a division: with rh = 1/s rounded and rl = 1/s - rh rounded,
// fma(x, rh, x * rl) is within little more than half an ulp of x / s (Brisebarre, Muller, Raina,
// IEEE TC 53(8), 2004), so it can be on the wrong side of a tie only if x / s is within that of
// one; tests/core/quotient_test.cc tests all significands of s against all ties up to 255.5 and the
// floats around them. So it rounds to the right integer of 8 bits or fewer, for 2^-100 <= |s| <=
// 2^76 (no denormal, no overflow). It is not the rounded quotient, and can't be used for FLOAT8 and
// FLOAT4 (it also loses -0), 16-bit integers, a quotient that is rounded to FLOAT16 or BFLOAT16, or
// a zero point that is added first.
#if defined(QUANTD_RECIPROCAL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUANTD_RECIPROCAL_INL_H_
#undef QUANTD_RECIPROCAL_INL_H_
#else
#define QUANTD_RECIPROCAL_INL_H_
#endif

#include <algorithm>
#include <cstring>

#include "kernels/pack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quantd {
namespace HWY_NAMESPACE {

// The reciprocals of a vector of scales. 1 - s * rh is exact in one fused multiply-add, so the
// correction is 1 / s - rh rounded once. (Multiplied by rh instead of divided by s, it is wrong for
// 1 of 2^23 significands, and no faster.)
template <class D>
HWY_INLINE void ReciprocalStep(D d, const float* scale, float* reciprocal, float* correction) {
  const auto one = hn::Set(d, 1.0f);
  const auto s = hn::LoadU(d, scale);
  const auto high = hn::Div(one, s);
  hn::StoreU(high, d, reciprocal);
  hn::StoreU(hn::Div(hn::NegMulAdd(high, s, one), s), d, correction);
}

// The reciprocals of `size` scales.
HWY_INLINE void ReciprocalsOf(const float* scale, size_t size, float* reciprocal,
                              float* correction) {
  size_t i = 0;
  for (; i + N <= size; i += N) ReciprocalStep(DF(), scale + i, reciprocal + i, correction + i);
  const hn::CappedTag<float, 1> one;
  for (; i < size; ++i) ReciprocalStep(one, scale + i, reciprocal + i, correction + i);
}

}  // namespace HWY_NAMESPACE
}  // namespace quantd
HWY_AFTER_NAMESPACE();

#endif  // QUANTD_RECIPROCAL_INL_H_
