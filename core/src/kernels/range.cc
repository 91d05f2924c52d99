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

// Bits without their sign, moved up by one: NaN and infinities are at least kNonFiniteBits.
inline constexpr uint32_t kNonFiniteBits = 0xFF000000u;
HWY_INLINE U Magnitude(V x) { return hn::ShiftLeft<1>(hn::BitCast(DU(), x)); }

// A range in every lane. Seen twice, an element changes nothing, so pieces may overlap.
template <NonFinite kNonFinite>
struct Lanes {
  V min;
  V max;
  U largest;  // of all Magnitudes

  // (Default member initializers would be compiled for the baseline.)
  HWY_INLINE Lanes() {
    min = hn::Zero(DF());
    max = hn::Zero(DF());
    largest = hn::Zero(DU());
  }

  HWY_INLINE void Add(V x) {
    const U magnitude = Magnitude(x);
    largest = hn::Max(largest, magnitude);
    if constexpr (kNonFinite == NonFinite::kIgnore) {
      const hn::RebindToSigned<DU> di;
      // Signed comparison of the bits moved back down: no sign is left.
      const auto finite = hn::Lt(hn::BitCast(di, hn::ShiftRight<1>(magnitude)),
                                 hn::Set(di, static_cast<int32_t>(kNonFiniteBits >> 1)));
      x = hn::IfThenElseZero(hn::RebindMask(DF(), finite), x);
    }
    min = MinSkipNan(x, min);
    max = MaxSkipNan(x, max);
  }
  HWY_INLINE void Join(const Lanes& other) {
    min = hn::Min(min, other.min);
    max = hn::Max(max, other.max);
    largest = hn::Max(largest, other.largest);
  }
  // Adds the lanes to one range.
  HWY_INLINE void Reduce(float& low, float& high) const {
    low = std::min(low, hn::GetLane(hn::MinOfLanes(DF(), min)));
    high = std::max(high, hn::GetLane(hn::MaxOfLanes(DF(), max)));
  }
};

HWY_INLINE bool IsNonFinite(U largest) {
  return hn::GetLane(hn::MaxOfLanes(DU(), largest)) >= kNonFiniteBits;
}

// Fewer elements than a vector.
template <NonFinite kNonFinite>
HWY_NOINLINE bool RangeShort(const uint8_t* x, size_t size, float& low, float& high) {
  bool non_finite = false;
  for (size_t i = 0; i < size; ++i) {
    float value;
    std::memcpy(&value, x + i * sizeof(float), sizeof(float));
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    if (bits << 1 >= kNonFiniteBits) {
      non_finite = true;
      continue;
    }
    low = std::min(low, value);
    high = std::max(high, value);
  }
  return non_finite;
}

// Elements with one range. `largest` collects over all runs.
template <NonFinite kNonFinite>
HWY_INLINE bool RangeRun(const uint8_t* x, size_t size, float& low, float& high, U& largest) {
  if (size < N) return RangeShort<kNonFinite>(x, size, low, high);
  const DF df;
  const float* floats = As<float>(x);
  // Four in flight hide the latency of min and max.
  Lanes<kNonFinite> a, b, c, d;
  size_t i = 0;
  for (; i + 4 * N <= size; i += 4 * N) {
    a.Add(hn::LoadU(df, floats + i));
    b.Add(hn::LoadU(df, floats + i + N));
    c.Add(hn::LoadU(df, floats + i + 2 * N));
    d.Add(hn::LoadU(df, floats + i + 3 * N));
  }
  for (; i + N <= size; i += N) a.Add(hn::LoadU(df, floats + i));
  if (i != size) b.Add(hn::LoadU(df, floats + size - N));
  a.Join(b);
  c.Join(d);
  a.Join(c);
  a.Reduce(low, high);
  largest = hn::Max(largest, a.largest);
  return false;
}

template <NonFinite kNonFinite>
HWY_INLINE bool RangeRuns(const RangeTile& tile) {
  bool non_finite = false;
  U largest = hn::Zero(DU());
  size_t left = tile.run - tile.first;
  size_t done = 0;
  for (size_t k = 0; done < tile.size; ++k) {
    const size_t size = std::min(left, tile.size - done);
    non_finite |= RangeRun<kNonFinite>(tile.x + done * sizeof(float), size, tile.min[k],
                                       tile.max[k], largest);
    done += size;
    left = tile.run;
  }
  return non_finite || IsNonFinite(largest);
}

template <NonFinite kNonFinite>
HWY_INLINE bool RangeElements(const RangeTile& tile) {
  const DF df;
  Lanes<kNonFinite> lanes;
  size_t i = 0;
  for (; i + N <= tile.size; i += N) {
    lanes.min = hn::LoadU(df, tile.min + i);
    lanes.max = hn::LoadU(df, tile.max + i);
    lanes.Add(hn::LoadU(df, As<float>(tile.x) + i));
    hn::StoreU(lanes.min, df, tile.min + i);
    hn::StoreU(lanes.max, df, tile.max + i);
  }
  bool non_finite = IsNonFinite(lanes.largest);
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
  const DF df;
  size_t i = 0;
  for (; i + 4 * N <= size; i += 4 * N) {
    Lanes<NonFinite::kReject> lanes;
    for (size_t j = i; j < i + 4 * N; j += N) lanes.Add(hn::LoadU(df, As<float>(x) + j));
    if (IsNonFinite(lanes.largest)) break;
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
