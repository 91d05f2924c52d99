// Smallest and largest elements, and whether there is a NaN or an infinity.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/range.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
#include "kernels/pack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quantd {
namespace HWY_NAMESPACE {

HWY_INLINE V Infinity() { return hn::Inf(DF()); }

// A range in every lane. Seen twice, an element changes nothing, so pieces may overlap.
template <NonFinite kNonFinite>
struct Lanes {
  V min;
  V max;
  NanWatch nan;
  bool infinite = false;  // kIgnore: one was left out

  // (Default member initializers would be compiled for the baseline.)
  HWY_INLINE Lanes() {
    min = hn::Zero(DF());
    max = hn::Zero(DF());
  }

  HWY_INLINE void Add(V a, V b) {
    nan.Add(a, b);
    if constexpr (kNonFinite == NonFinite::kIgnore) {
      const auto in_a = hn::Lt(hn::Abs(a), Infinity());
      const auto in_b = hn::Lt(hn::Abs(b), Infinity());
      if (HWY_UNLIKELY(!hn::AllTrue(DF(), hn::And(in_a, in_b)))) {
        infinite = true;
        a = hn::IfThenElseZero(in_a, a);
        b = hn::IfThenElseZero(in_b, b);
      }
    }
    min = MinSkipNan(a, min);
    max = MaxSkipNan(a, max);
    min = MinSkipNan(b, min);
    max = MaxSkipNan(b, max);
  }
  HWY_INLINE void Join(const Lanes& other) {
    min = hn::Min(min, other.min);
    max = hn::Max(max, other.max);
    nan.Join(other.nan);
    infinite |= other.infinite;
  }
  // Whether anything was NaN or infinite.
  HWY_INLINE bool NonFiniteSeen() const {
    if (nan.Any() || infinite) return true;
    if constexpr (kNonFinite == NonFinite::kIgnore) return false;
    const auto finite = hn::And(hn::Lt(max, Infinity()), hn::Lt(hn::Neg(min), Infinity()));
    return !hn::AllTrue(DF(), finite);
  }
};

// Fewer elements than a vector.
template <NonFinite kNonFinite>
HWY_NOINLINE bool RangeShort(const uint8_t* x, size_t size, float& low, float& high) {
  bool non_finite = false;
  for (size_t i = 0; i < size; ++i) {
    float value;
    std::memcpy(&value, x + i * sizeof(float), sizeof(float));
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    if ((bits & 0x7F800000u) == 0x7F800000u) {
      non_finite = true;
      continue;
    }
    low = std::min(low, value);
    high = std::max(high, value);
  }
  return non_finite;
}

// The lanes of `size` elements. REQUIRES: size >= N.
template <NonFinite kNonFinite>
HWY_INLINE Lanes<kNonFinite> LanesOf(const uint8_t* x, size_t size) {
  const DF df;
  const float* floats = As<float>(x);
  Lanes<kNonFinite> a;
  size_t i = 0;
  if (size >= 8 * N) {
    // Four in flight hide the latency of min and max.
    Lanes<kNonFinite> b, c, d;
    for (; i + 8 * N <= size; i += 8 * N) {
      a.Add(hn::LoadU(df, floats + i), hn::LoadU(df, floats + i + N));
      b.Add(hn::LoadU(df, floats + i + 2 * N), hn::LoadU(df, floats + i + 3 * N));
      c.Add(hn::LoadU(df, floats + i + 4 * N), hn::LoadU(df, floats + i + 5 * N));
      d.Add(hn::LoadU(df, floats + i + 6 * N), hn::LoadU(df, floats + i + 7 * N));
    }
    a.Join(b);
    c.Join(d);
    a.Join(c);
  }
  for (; i + 2 * N <= size; i += 2 * N) {
    a.Add(hn::LoadU(df, floats + i), hn::LoadU(df, floats + i + N));
  }
  if (i != size) {
    // The last vector may overlap, and the one before it, if there is one, may be whole.
    a.Add(hn::LoadU(df, floats + std::min(i, size - N)), hn::LoadU(df, floats + size - N));
  }
  return a;
}

// Elements with one range; returns whether one was not finite.
template <NonFinite kNonFinite>
HWY_INLINE bool RangeRun(const uint8_t* x, size_t size, float& low, float& high) {
  if (size < N) return RangeShort<kNonFinite>(x, size, low, high);
  const Lanes<kNonFinite> lanes = LanesOf<kNonFinite>(x, size);
  low = std::min(low, hn::GetLane(hn::MinOfLanes(DF(), lanes.min)));
  high = std::max(high, hn::GetLane(hn::MaxOfLanes(DF(), lanes.max)));
  return lanes.NonFiniteSeen();
}

// Min or Max of all lanes of four vectors at once, and of the four floats at `found`: a third of
// the work of four reductions.
template <class Op>
HWY_INLINE void ReduceFour(V a, V b, V c, V d, Op op, float* found) {
  const DF df;
  const hn::Repartition<double, DF> d64;
  const V ab = op(hn::InterleaveLower(df, a, b), hn::InterleaveUpper(df, a, b));
  const V cd = op(hn::InterleaveLower(df, c, d), hn::InterleaveUpper(df, c, d));
  const auto ab64 = hn::BitCast(d64, ab);
  const auto cd64 = hn::BitCast(d64, cd);
  // In every 128-bit block: a, b, c, d.
  const V abcd = op(hn::BitCast(df, hn::InterleaveLower(d64, ab64, cd64)),
                    hn::BitCast(df, hn::InterleaveUpper(d64, ab64, cd64)));
  alignas(64) float blocks[N];
  const hn::CappedTag<float, 4> four;
  hn::Store(abcd, df, blocks);
  auto all = hn::LoadU(four, found);
  for (size_t i = 0; i < N; i += 4) all = op(all, hn::Load(four, blocks + i));
  hn::StoreU(all, four, found);
}
struct MinOp {
  template <class T>
  HWY_INLINE T operator()(T a, T b) const {
    return hn::Min(a, b);
  }
};
struct MaxOp {
  template <class T>
  HWY_INLINE T operator()(T a, T b) const {
    return hn::Max(a, b);
  }
};

template <NonFinite kNonFinite>
HWY_INLINE bool RangeRuns(const RangeTile& tile) {
  bool non_finite = false;
  Lanes<kNonFinite> all;
  const size_t run = tile.run;
  size_t left = run - tile.first;
  size_t done = 0;
  for (size_t k = 0; done < tile.size;) {
    const uint8_t* x = tile.x + done * sizeof(float);
    const size_t rest = tile.size - done;
    if (left == run && run >= N && run <= rest / 4) {
      const auto a = LanesOf<kNonFinite>(x, run);
      const auto b = LanesOf<kNonFinite>(x + run * sizeof(float), run);
      const auto c = LanesOf<kNonFinite>(x + 2 * run * sizeof(float), run);
      const auto d = LanesOf<kNonFinite>(x + 3 * run * sizeof(float), run);
      ReduceFour(a.min, b.min, c.min, d.min, MinOp(), tile.min + k);
      ReduceFour(a.max, b.max, c.max, d.max, MaxOp(), tile.max + k);
      for (const auto& lanes : {a, b, c, d}) all.Join(lanes);
      done += 4 * run;
      k += 4;
      continue;
    }
    const size_t size = std::min(left, rest);
    non_finite |= RangeRun<kNonFinite>(x, size, tile.min[k], tile.max[k]);
    done += size;
    ++k;
    left = run;
  }
  return non_finite || all.NonFiniteSeen();
}

template <NonFinite kNonFinite>
HWY_INLINE bool RangeElements(const RangeTile& tile) {
  const DF df;
  Lanes<kNonFinite> all;
  size_t i = 0;
  for (; i + N <= tile.size; i += N) {
    const V x = hn::LoadU(df, As<float>(tile.x) + i);
    Lanes<kNonFinite> lanes;
    lanes.Add(x, x);
    hn::StoreU(hn::Min(lanes.min, hn::LoadU(df, tile.min + i)), df, tile.min + i);
    hn::StoreU(hn::Max(lanes.max, hn::LoadU(df, tile.max + i)), df, tile.max + i);
    all.Join(lanes);
  }
  bool non_finite = all.NonFiniteSeen();
  for (; i < tile.size; ++i) {
    non_finite |= RangeShort<kNonFinite>(tile.x + i * sizeof(float), 1, tile.min[i], tile.max[i]);
  }
  return non_finite;
}

template <NonFinite kNonFinite, ScaleMode kMode>
bool Range(const RangeTile& tile) {
  if constexpr (kMode == ScaleMode::kPerElement) return RangeElements<kNonFinite>(tile);
  return RangeRuns<kNonFinite>(tile);
}

size_t FindNonFinite(const uint8_t* x, size_t size) {
  size_t i = 0;
  while (i + 8 * N <= size &&
         !LanesOf<NonFinite::kReject>(x + i * sizeof(float), 8 * N).NonFiniteSeen()) {
    i += 8 * N;
  }
  float low = 0;
  float high = 0;
  while (i < size && !RangeShort<NonFinite::kReject>(x + i * sizeof(float), 1, low, high)) ++i;
  return i;
}

namespace {

template <NonFinite kNonFinite>
void Set(KernelTable& table) {
  auto& kernels = table.range[static_cast<size_t>(kNonFinite)];
  kernels[0] = Range<kNonFinite, ScaleMode::kRuns>;
  kernels[1] = Range<kNonFinite, ScaleMode::kPerElement>;
}

}  // namespace

void FillRange(KernelTable& table) {
#define QUANTD_RANGE(non_finite) Set<NonFinite::non_finite>(table);
#include "kernels/kernels.inc"
  table.find_non_finite = FindNonFinite;
}

}  // namespace HWY_NAMESPACE
}  // namespace quantd
HWY_AFTER_NAMESPACE();
#endif
