// The smallest and the largest elements, and whether there is a NaN or an infinity.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/range.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
#include "kernels/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quantd {
namespace HWY_NAMESPACE {

HWY_INLINE V Infinity() { return hn::Inf(DF()); }

// A range in every lane. Pieces may overlap, because reading an element twice changes nothing.
struct Lanes {
  V min;
  V max;
  // (Default member initializers would be compiled for the baseline.)
  HWY_INLINE Lanes() {
    min = hn::Zero(DF());
    max = hn::Zero(DF());
  }
  HWY_INLINE void Join(const Lanes& other) {
    min = hn::Min(min, other.min);
    max = hn::Max(max, other.max);
  }
};

// Widens ranges and remembers whether anything was not finite.
template <NonFinite kNonFinite>
class Widener {
 public:
  HWY_INLINE Widener() {}  // (an implicit one would be compiled for the baseline, too)

  HWY_INLINE void Add(V a, V b, Lanes& lanes) {
    nan_.Add(a, b);
    if constexpr (kNonFinite == NonFinite::kIgnore) {
      const auto in_a = hn::Lt(hn::Abs(a), Infinity());
      const auto in_b = hn::Lt(hn::Abs(b), Infinity());
      if (HWY_UNLIKELY(!hn::AllTrue(DF(), hn::And(in_a, in_b)))) {
        infinite_ = true;
        a = hn::IfThenElseZero(in_a, a);
        b = hn::IfThenElseZero(in_b, b);
      }
    }
    lanes.min = MinSkipNan(b, MinSkipNan(a, lanes.min));
    lanes.max = MaxSkipNan(b, MaxSkipNan(a, lanes.max));
  }
  // The range of only two vectors, which need not contain 0.
  HWY_INLINE Lanes Only(V a, V b) {
    Lanes lanes;
    if constexpr (kNonFinite == NonFinite::kIgnore) {
      Add(a, b, lanes);
    } else {
      nan_.Add(a, b);
      lanes.min = hn::Min(a, b);
      lanes.max = hn::Max(a, b);
    }
    return lanes;
  }
  // Infinities are detected in the result, once per run. kIgnore has already skipped them.
  HWY_INLINE void Check(const Lanes& found) {
    if constexpr (kNonFinite == NonFinite::kReject) found_.Join(found);
  }
  HWY_INLINE bool NonFiniteSeen() const {
    const auto finite =
        hn::And(hn::Lt(found_.max, Infinity()), hn::Lt(hn::Neg(found_.min), Infinity()));
    return infinite_ || nan_.Any() || !hn::AllTrue(DF(), finite);
  }

 private:
  NanWatch nan_;
  bool infinite_ = false;
  Lanes found_;
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

// The ranges in the lanes of `size` elements. REQUIRES: size >= N.
template <NonFinite kNonFinite>
HWY_INLINE Lanes LanesOf(const uint8_t* x, size_t size, Widener<kNonFinite>& widener,
                         bool fetch = false) {
  const DF df;
  const float* floats = As<float>(x);
  Lanes a;
  size_t i = 0;
  if (size >= 8 * N) {
    // Four independent chains hide the latency of min and max.
    Lanes b, c, d;
    for (; i + 8 * N <= size; i += 8 * N) {
      if (fetch) FetchAhead<8 * N * sizeof(float)>(x + i * sizeof(float));
      widener.Add(hn::LoadU(df, floats + i), hn::LoadU(df, floats + i + N), a);
      widener.Add(hn::LoadU(df, floats + i + 2 * N), hn::LoadU(df, floats + i + 3 * N), b);
      widener.Add(hn::LoadU(df, floats + i + 4 * N), hn::LoadU(df, floats + i + 5 * N), c);
      widener.Add(hn::LoadU(df, floats + i + 6 * N), hn::LoadU(df, floats + i + 7 * N), d);
    }
    a.Join(b);
    c.Join(d);
    a.Join(c);
  }
  for (; i + 2 * N <= size; i += 2 * N) {
    widener.Add(hn::LoadU(df, floats + i), hn::LoadU(df, floats + i + N), a);
  }
  if (i != size) {
    // The last vector may overlap others, and so may the previous one.
    widener.Add(hn::LoadU(df, floats + std::min(i, size - N)), hn::LoadU(df, floats + size - N), a);
  }
  return a;
}

// Elements with one range; returns whether fewer than N elements had a non-finite one.
template <NonFinite kNonFinite>
HWY_INLINE bool RangeRun(const uint8_t* x, size_t size, float& low, float& high,
                         Widener<kNonFinite>& widener, bool fetch) {
  if (size < N) return RangeShort<kNonFinite>(x, size, low, high);
  const Lanes lanes = LanesOf(x, size, widener, fetch);
  widener.Check(lanes);
  low = std::min(low, hn::GetLane(hn::MinOfLanes(DF(), lanes.min)));
  high = std::max(high, hn::GetLane(hn::MaxOfLanes(DF(), lanes.max)));
  return false;
}

// The lanes of a run. kShort: fewer than N elements, where missing ones are 0, which is in every
// range. REQUIRES: N elements can be read.
template <bool kShort, NonFinite kNonFinite>
HWY_INLINE Lanes LanesOfRun(const uint8_t* x, size_t run, Widener<kNonFinite>& widener) {
  if constexpr (!kShort) {
    if (run != 2 * N) return LanesOf(x, run, widener);
    return widener.Only(hn::LoadU(DF(), As<float>(x)), hn::LoadU(DF(), As<float>(x) + N));
  } else {
    const V all = hn::LoadU(DF(), As<float>(x));
    const V v = hn::IfThenElseZero(hn::FirstN(DF(), run), all);
    Lanes lanes;
    widener.Add(v, v, lanes);
    return lanes;
  }
}

// Four whole runs. If this is inlined with a constant length, the loops over it vanish.
template <bool kShort, NonFinite kNonFinite>
HWY_INLINE void RangeFour(const uint8_t* x, size_t run, float* low, float* high,
                          Widener<kNonFinite>& widener) {
  const size_t bytes = run * sizeof(float);
  const Lanes a = LanesOfRun<kShort>(x, run, widener);
  const Lanes b = LanesOfRun<kShort>(x + bytes, run, widener);
  const Lanes c = LanesOfRun<kShort>(x + 2 * bytes, run, widener);
  const Lanes d = LanesOfRun<kShort>(x + 3 * bytes, run, widener);
  Lanes all;
  all.min = ReduceFour(a.min, b.min, c.min, d.min, MinOp(), low);
  all.max = ReduceFour(a.max, b.max, c.max, d.max, MaxOp(), high);
  widener.Check(all);
}

template <NonFinite kNonFinite>
HWY_INLINE bool RangeRuns(const RangeTile& tile) {
  bool non_finite = false;
  Widener<kNonFinite> widener;
  const size_t run = tile.run;
  size_t left = run - tile.first;
  size_t done = 0;
  for (size_t k = 0; done < tile.size;) {
    const uint8_t* x = tile.x + done * sizeof(float);
    const size_t rest = tile.size - done;
    if (left == run && run <= rest / 4 && (run >= N || 4 * run + N <= rest)) {
      if (run < N) {
        RangeFour<true>(x, run, tile.min + k, tile.max + k, widener);
      } else if (run == 2 * N) {
        RangeFour<false>(x, 2 * N, tile.min + k, tile.max + k, widener);
      } else if (run == 4 * N) {
        RangeFour<false>(x, 4 * N, tile.min + k, tile.max + k, widener);
      } else {
        RangeFour<false>(x, run, tile.min + k, tile.max + k, widener);
      }
      done += 4 * run;
      k += 4;
      continue;
    }
    const size_t size = std::min(left, rest);
    non_finite |= RangeRun(x, size, tile.min[k], tile.max[k], widener, tile.fetch);
    done += size;
    ++k;
    left = run;
  }
  return non_finite || widener.NonFiniteSeen();
}

template <NonFinite kNonFinite>
HWY_INLINE bool RangeElements(const RangeTile& in_tile) {
  const RangeTile tile = in_tile;  // a copy, so that the compiler knows that no store changes it
  const DF df;
  Widener<kNonFinite> widener;
  size_t i = 0;
  for (; i + N <= tile.size; i += N) {
    const V x = hn::LoadU(df, As<float>(tile.x) + i);
    Lanes lanes;
    lanes.min = hn::LoadU(df, tile.min + i);
    lanes.max = hn::LoadU(df, tile.max + i);
    widener.Add(x, x, lanes);
    hn::StoreU(lanes.min, df, tile.min + i);
    hn::StoreU(lanes.max, df, tile.max + i);
    lanes.min = x;  // not the results of earlier tiles
    lanes.max = x;
    widener.Check(lanes);
  }
  bool non_finite = widener.NonFiniteSeen();
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
  constexpr size_t kStep = 8 * N;
  size_t i = 0;
  for (; i + kStep <= size; i += kStep) {
    Widener<NonFinite::kReject> widener;
    widener.Check(LanesOf(x + i * sizeof(float), kStep, widener));
    if (widener.NonFiniteSeen()) break;
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
