// Many scales at a time: checks given scales, computes their reciprocals for two fused
// multiply-adds, and makes DynamicQuantize's scales.
#include "kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/scale_columns.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
#include "kernels/pack-inl.h"
#include "kernels/reciprocal-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quantd {
namespace HWY_NAMESPACE {

// Calls step(d, i) for all of `size` elements: N at a time, then one.
template <class Step>
HWY_INLINE void ForEachVector(size_t size, Step step) {
  size_t i = 0;
  for (; i + N <= size; i += N) step(DF(), i);
  for (; i < size; ++i) step(hn::CappedTag<float, 1>(), i);
}

Magnitudes MagnitudesOf(const float* x, size_t size) {
  const DI d;
  // Compares bits, which have the same order.
  const I mask = hn::Set(d, 0x7FFFFFFF);
  I smallest = hn::BitCast(d, hn::Set(DF(), 1.0f));
  I largest = smallest;
  const auto add = [&](V v) HWY_ATTR {
    const I magnitude = hn::And(hn::BitCast(d, v), mask);
    smallest = hn::Min(smallest, magnitude);
    largest = hn::Max(largest, magnitude);
  };
  size_t i = 0;
  for (; i + N <= size; i += N) add(hn::LoadU(DF(), x + i));
  for (; i < size; ++i) add(hn::Set(DF(), x[i]));
  return {hn::GetLane(hn::BitCast(DF(), hn::MinOfLanes(d, smallest))),
          hn::GetLane(hn::BitCast(DF(), hn::MaxOfLanes(d, largest)))};
}

void MakeReciprocals(const float* scale, size_t size, float* reciprocal, float* correction) {
  ReciprocalsOf(scale, size, reciprocal, correction);
}

void RangeScales(const float* min, const float* max, size_t size, float steps, float* scale) {
  ForEachVector(size, [&](auto d, size_t i) HWY_ATTR {
    const auto range = hn::Sub(hn::LoadU(d, max + i), hn::LoadU(d, min + i));
    const auto made = hn::Div(range, hn::Set(d, steps));
    // max - min is 0 only if both are: denormals are not flushed here.
    hn::StoreU(hn::IfThenElse(hn::Eq(range, hn::Zero(d)), hn::Set(d, 1.0f), made), d, scale + i);
  });
}

void RangeZeroPoints(const float* min, const float* max, const float* scale, size_t size,
                     float minimum, float maximum, float* zero_point) {
  ForEachVector(size, [&](auto d, size_t i) HWY_ATTR {
    const auto low = hn::LoadU(d, min + i);
    const auto bottom = hn::Set(d, minimum);
    const auto wanted = hn::Sub(bottom, hn::Div(low, hn::LoadU(d, scale + i)));
    const auto clamped = hn::Min(hn::Max(wanted, bottom), hn::Set(d, maximum));
    const auto none = hn::Eq(hn::Sub(hn::LoadU(d, max + i), low), hn::Zero(d));
    hn::StoreU(hn::IfThenZeroElse(none, hn::Round(clamped)), d, zero_point + i);
  });
}

void FillScaleColumns(KernelTable& table) {
  table.magnitudes = MagnitudesOf;
  table.make_reciprocals = MakeReciprocals;
  table.range_scales = RangeScales;
  table.range_zero_points = RangeZeroPoints;
}

}  // namespace HWY_NAMESPACE
}  // namespace quantd
HWY_AFTER_NAMESPACE();
#endif
