// Steps of the layouts' kernels over a batch of blocks: the extremes of each block, and the codes
// of its elements, one byte each. Included once per target.
#if defined(QUANTD_BLOCKS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUANTD_BLOCKS_INL_H_
#undef QUANTD_BLOCKS_INL_H_
#else
#define QUANTD_BLOCKS_INL_H_
#endif

#include <algorithm>

#include "kernels/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quantd {
namespace HWY_NAMESPACE {

inline constexpr size_t kUnit = 4 * N;  // elements with one vector of codes

// Elements of a batch: 4 KiB of FLOAT.
inline constexpr size_t kBatch = 1024;

// The extremes of each block, of its elements or of their magnitudes. The arrays have room for a
// multiple of four entries.
template <size_t kBlock, bool kMagnitudes, class Op>
HWY_INLINE void ExtremesOf(const uint8_t* x, size_t blocks, Op op, float* found) {
  const DF df;
  const auto lanes_of = [&](size_t block) HWY_ATTR {
    // If there are fewer than four blocks left, the last one is repeated.
    const float* const floats = As<float>(x) + std::min(block, blocks - 1) * kBlock;
    const auto load = [&](size_t i) HWY_ATTR {
      const V v = hn::LoadU(df, floats + i);
      return kMagnitudes ? hn::Abs(v) : v;
    };
    V lanes = load(0);
    for (size_t i = N; i < kBlock; i += N) lanes = op(lanes, load(i));
    return lanes;
  };
  for (size_t block = 0; block < blocks; block += 4) {
    const V a = lanes_of(block);
    const V b = lanes_of(block + 1);
    const V c = lanes_of(block + 2);
    const V d = lanes_of(block + 3);
    std::fill_n(found + block, 4, Op::kNeutral);
    ReduceFour(a, b, c, d, op, found + block);
  }
}

// One byte per code; `code` makes int32 in [0, 255] from a vector of the block with an index.
template <size_t kBlock, class Code>
HWY_INLINE void CodesOf(const uint8_t* x, size_t blocks, const Code& code, uint8_t* codes) {
  const auto vector_of = [&](size_t element) HWY_ATTR {
    // A unit may cover one block more than there is; the last one is repeated then.
    const size_t block = std::min(element / kBlock, blocks - 1);
    return code(hn::LoadU(DF(), As<float>(x) + block * kBlock + element % kBlock), block);
  };
  for (size_t i = 0; i < blocks * kBlock; i += kUnit) {
    const I16 ab = PackInt16(vector_of(i), vector_of(i + N));
    const I16 cd = PackInt16(vector_of(i + 2 * N), vector_of(i + 3 * N));
    hn::StoreU(PackBytes(ab, cd), DU8(), codes + i);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace quantd
HWY_AFTER_NAMESPACE();

#endif  // QUANTD_BLOCKS_INL_H_
