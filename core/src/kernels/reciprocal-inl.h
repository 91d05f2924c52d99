// 1 / scale in two floats, which is what two fused multiply-adds need of a scale (README.md).
// Included once a target.
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

// Those of a vector's scales. 1 - s * rh is exact in one fused multiply-add, so the correction is
// 1 / s - rh rounded once. (Times rh instead of by s it is wrong for 1 of 2^23 significands, and no
// faster.)
template <class D>
HWY_INLINE void ReciprocalStep(D d, const float* scale, float* reciprocal, float* correction) {
  const auto one = hn::Set(d, 1.0f);
  const auto s = hn::LoadU(d, scale);
  const auto high = hn::Div(one, s);
  hn::StoreU(high, d, reciprocal);
  hn::StoreU(hn::Div(hn::NegMulAdd(high, s, one), s), d, correction);
}

// Those of `size` scales.
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
