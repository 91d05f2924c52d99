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

// Non-finite elements are rare: they are detected once per vector, and skipped in a branch of their
// own.
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

// The range of `size` values, a multiple of 4 N, if all are finite; returns whether they are: only
// then are their products with 0 all 0.
HWY_INLINE bool FindFiniteExtremes(const uint8_t* x, size_t size, float& low, float& high) {
  const DF df;
  const V zero = hn::Zero(df);
  // Chains that hide the latency.
  V low_a = hn::Inf(df), low_b = low_a, low_c = low_a, low_d = low_a;
  V high_a = hn::Neg(low_a), high_b = high_a, high_c = high_a, high_d = high_a;
  V sum_a = zero, sum_b = zero, sum_c = zero, sum_d = zero;
  for (size_t i = 0; i < size; i += 4 * N) {
    const float* const in = As<float>(x) + i;
    const V a = hn::LoadU(df, in), b = hn::LoadU(df, in + N);
    const V c = hn::LoadU(df, in + 2 * N), d = hn::LoadU(df, in + 3 * N);
    low_a = hn::Min(low_a, a), high_a = hn::Max(high_a, a);
    low_b = hn::Min(low_b, b), high_b = hn::Max(high_b, b);
    low_c = hn::Min(low_c, c), high_c = hn::Max(high_c, c);
    low_d = hn::Min(low_d, d), high_d = hn::Max(high_d, d);
    sum_a = hn::MulAdd(a, zero, sum_a), sum_b = hn::MulAdd(b, zero, sum_b);
    sum_c = hn::MulAdd(c, zero, sum_c), sum_d = hn::MulAdd(d, zero, sum_d);
  }
  const V sum = hn::Add(hn::Add(sum_a, sum_b), hn::Add(sum_c, sum_d));
  if (!hn::AllTrue(df, hn::Eq(sum, sum))) return false;
  const V lows = hn::Min(hn::Min(low_a, low_b), hn::Min(low_c, low_d));
  const V highs = hn::Max(hn::Max(high_a, high_b), hn::Max(high_c, high_d));
  low = std::min(low, hn::GetLane(hn::MinOfLanes(df, lows)));
  high = std::max(high, hn::GetLane(hn::MaxOfLanes(df, highs)));
  return true;
}

// The same for any values, skipping non-finite ones; returns their number.
HWY_NOINLINE size_t FindSomeExtremes(const uint8_t* x, size_t size, float& low, float& high) {
  const DF df;
  size_t others = 0;
  V lows = hn::Inf(df);
  V highs = hn::Neg(lows);
  for (size_t i = 0; i < size; i += N) {
    const FiniteLanes v = OnlyFinite(hn::LoadU(df, As<float>(x) + i));
    lows = hn::Min(lows, v.low);
    highs = hn::Max(highs, v.high);
    others += v.others;
  }
  low = std::min(low, hn::GetLane(hn::MinOfLanes(df, lows)));
  high = std::max(high, hn::GetLane(hn::MaxOfLanes(df, highs)));
  return others;
}

size_t FindExtremes(const uint8_t* x, size_t size, float* low, float* high) {
  // The amount that is read again if something is not finite.
  constexpr size_t kPiece = 1024;
  size_t others = 0;
  size_t i = 0;
  while (i + 4 * N <= size) {
    const size_t piece = std::min(kPiece, size - i) / (4 * N) * (4 * N);
    const uint8_t* const from = x + i * sizeof(float);
    if (HWY_UNLIKELY(!FindFiniteExtremes(from, piece, *low, *high))) {
      others += FindSomeExtremes(from, piece, *low, *high);
    }
    i += piece;
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
    // The upper halves of both: those of a are moved to the even lanes.
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
