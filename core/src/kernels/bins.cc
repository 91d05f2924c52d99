// Calibration: ranges that need not contain 0, and the bins of values (rules/bins.h).
#include "rules/bins.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/bins.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
#include "kernels/pack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quantd {
namespace HWY_NAMESPACE {

// Elements that are not finite are rare: they are looked for once a vector, and left out in a
// branch of their own.
struct FiniteLanes {
  V low;  // v, or +Inf where it is not finite
  V high;
  size_t others;

  HWY_INLINE FiniteLanes() {}  // (an implicit one would be compiled for the baseline)
};
HWY_INLINE FiniteLanes OnlyFinite(V v) {
  const DF df;
  const auto finite = hn::Lt(hn::Abs(v), hn::Inf(df));
  FiniteLanes only;
  only.low = v;
  only.high = v;
  only.others = 0;
  if (HWY_UNLIKELY(!hn::AllTrue(df, finite))) {
    only.low = hn::IfThenElse(finite, v, hn::Inf(df));
    only.high = hn::IfThenElse(finite, v, hn::Neg(hn::Inf(df)));
    only.others = N - hn::CountTrue(df, finite);
  }
  return only;
}

HWY_INLINE size_t AddElement(const uint8_t* x, float& low, float& high) {
  float value;
  std::memcpy(&value, x, sizeof(value));
  uint32_t bits;
  std::memcpy(&bits, x, sizeof(bits));
  if ((bits & 0x7F800000u) == 0x7F800000u) return 1;
  low = std::min(low, value);
  high = std::max(high, value);
  return 0;
}

size_t FindExtremes(const uint8_t* x, size_t size, float* low, float* high) {
  const DF df;
  size_t others = 0;
  size_t i = 0;
  if (size >= N) {
    // Two chains hide the latency of min and max.
    V low_a = hn::Inf(df);
    V low_b = low_a;
    V high_a = hn::Neg(low_a);
    V high_b = high_a;
    for (; i + 2 * N <= size; i += 2 * N) {
      const FiniteLanes a = OnlyFinite(hn::LoadU(df, As<float>(x) + i));
      const FiniteLanes b = OnlyFinite(hn::LoadU(df, As<float>(x) + i + N));
      low_a = hn::Min(low_a, a.low);
      high_a = hn::Max(high_a, a.high);
      low_b = hn::Min(low_b, b.low);
      high_b = hn::Max(high_b, b.high);
      others += a.others + b.others;
    }
    *low = std::min(*low, hn::GetLane(hn::MinOfLanes(df, hn::Min(low_a, low_b))));
    *high = std::max(*high, hn::GetLane(hn::MaxOfLanes(df, hn::Max(high_a, high_b))));
  }
  for (; i < size; ++i) others += AddElement(x + i * sizeof(float), *low, *high);
  return others;
}

bool FindExtremesEach(const uint8_t* x, size_t size, float* low, float* high) {
  const DF df;
  size_t others = 0;
  size_t i = 0;
  for (; i + N <= size; i += N) {
    const FiniteLanes v = OnlyFinite(hn::LoadU(df, As<float>(x) + i));
    hn::StoreU(hn::Min(hn::LoadU(df, low + i), v.low), df, low + i);
    hn::StoreU(hn::Max(hn::LoadU(df, high + i), v.high), df, high + i);
    others += v.others;
  }
  for (; i < size; ++i) others += AddElement(x + i * sizeof(float), low[i], high[i]);
  return others > 0;
}

// rules::SlotOf of the upper halves of floats, in the lanes of D.
template <class D>
HWY_INLINE hn::Vec<D> SlotsOf(D d, hn::Vec<D> halves, hn::Vec<D> floors) {
  static_assert(rules::kWindow == 3 << 10);
  const auto m = hn::And(halves, hn::Set(d, 0x7FFF));
  // m / 3072 is (m >> 10) / 3, and that of numbers up to 31 is * 11 >> 5.
  const auto window = hn::ShiftRight<5>(hn::Mul(hn::ShiftRight<10>(m), hn::Set(d, int16_t{11})));
  const auto in_window = hn::Sub(m, hn::Mul(window, hn::Set(d, int16_t{rules::kWindow})));
  const auto negative = hn::And(hn::ShiftRight<15>(halves), hn::Set(d, int16_t{rules::kWindow}));
  const auto slots = hn::Add(hn::Add(in_window, negative), hn::Set(d, int16_t{1}));
  const auto apart = hn::IfThenElseZero(hn::Gt(m, floors), slots);
  const auto finite = hn::Lt(m, hn::Set(d, int16_t{rules::kInfiniteMagnitude}));
  return hn::IfThenElse(finite, apart, hn::Set(d, int16_t{rules::kNonFiniteSlot}));
}

HWY_INLINE uint16_t SlotAt(const uint8_t* x, int floor) {
  uint32_t bits;
  std::memcpy(&bits, x, sizeof(bits));
  return rules::SlotOf(bits, floor);
}

void FindSlots(const uint8_t* x, size_t size, uint16_t floor, uint16_t* slots) {
  const DU du;
  const DI16 d16;
  const auto floors = hn::Set(d16, static_cast<int16_t>(floor));
  size_t i = 0;
  for (; i + 2 * N <= size; i += 2 * N) {
    const auto a = hn::LoadU(du, As<uint32_t>(x) + i);
    const auto b = hn::LoadU(du, As<uint32_t>(x) + i + N);
    // The upper halves of both: those of a move to the even lanes.
    const auto halves = hn::OddEven(hn::BitCast(d16, b), hn::BitCast(d16, hn::ShiftRight<16>(a)));
    hn::StoreU(SlotsOf(d16, halves, floors), d16, reinterpret_cast<int16_t*>(slots) + i);
  }
  for (; i < size; ++i) slots[i] = SlotAt(x + i * sizeof(float), floor);
}

void FindSlotsEach(const uint8_t* x, size_t size, const uint16_t* floors, uint16_t* slots) {
  const DI di;
  const hn::Rebind<int16_t, DF> half;
  size_t i = 0;
  for (; i + N <= size; i += N) {
    // Shifted with its sign, an upper half fits int16.
    const auto bits = hn::LoadU(di, As<int32_t>(x) + i);
    const auto halves = hn::DemoteTo(half, hn::ShiftRight<16>(bits));
    const auto floor = hn::LoadU(half, reinterpret_cast<const int16_t*>(floors) + i);
    hn::StoreU(SlotsOf(half, halves, floor), half, reinterpret_cast<int16_t*>(slots) + i);
  }
  for (; i < size; ++i) slots[i] = SlotAt(x + i * sizeof(float), floors[i]);
}

void FillBins(KernelTable& table) {
  table.find_extremes = FindExtremes;
  table.find_extremes_each = FindExtremesEach;
  table.find_slots = FindSlots;
  table.find_slots_each = FindSlotsEach;
}

}  // namespace HWY_NAMESPACE
}  // namespace quantd
HWY_AFTER_NAMESPACE();
#endif
