// The smallest or largest lanes of four vectors, computed at once. Included once per target.
#if defined(QUANTD_REDUCE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUANTD_REDUCE_INL_H_
#undef QUANTD_REDUCE_INL_H_
#else
#define QUANTD_REDUCE_INL_H_
#endif

#include <limits>

#include "kernels/pack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quantd {
namespace HWY_NAMESPACE {

// Min or Max of the 128-bit blocks of a vector.
template <class D, class Op>
HWY_INLINE hn::Vec<hn::CappedTag<float, 4>> FoldBlocks([[maybe_unused]] D d, hn::Vec<D> v,
                                                       [[maybe_unused]] Op op) {
  if constexpr (hn::MaxLanes(D()) == 4) {
    return v;
  } else {
    const hn::Half<D> half;
    return FoldBlocks(half, op(hn::LowerHalf(half, v), hn::UpperHalf(half, v)), op);
  }
}

// Min or Max of all lanes of four vectors at once, and of the four floats at `found`: a third of
// the work of four reductions.
template <class Op>
HWY_INLINE V ReduceFour(V a, V b, V c, V d, Op op, float* found) {
  const DF df;
  const hn::Repartition<double, DF> d64;
  const V ab = op(hn::InterleaveLower(df, a, b), hn::InterleaveUpper(df, a, b));
  const V cd = op(hn::InterleaveLower(df, c, d), hn::InterleaveUpper(df, c, d));
  const auto ab64 = hn::BitCast(d64, ab);
  const auto cd64 = hn::BitCast(d64, cd);
  // In every 128-bit block: a, b, c, d.
  const V abcd = op(hn::BitCast(df, hn::InterleaveLower(d64, ab64, cd64)),
                    hn::BitCast(df, hn::InterleaveUpper(d64, ab64, cd64)));
  const hn::CappedTag<float, 4> four;
  hn::StoreU(op(hn::LoadU(four, found), FoldBlocks(df, abcd, op)), four, found);
  return abcd;
}
struct MinOp {
  static constexpr float kNeutral = std::numeric_limits<float>::infinity();
  template <class T>
  HWY_INLINE T operator()(T a, T b) const {
    return hn::Min(a, b);
  }
};
struct MaxOp {
  static constexpr float kNeutral = -std::numeric_limits<float>::infinity();
  template <class T>
  HWY_INLINE T operator()(T a, T b) const {
    return hn::Max(a, b);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace quantd
HWY_AFTER_NAMESPACE();

#endif  // QUANTD_REDUCE_INL_H_
