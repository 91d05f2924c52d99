// The recipes for embeddings: they compute the codes of a block.
//
// The recipes divide and then drop the fraction, so the slightest error matters where the quotient
// is next to a whole number, and nowhere else. So a fast product first tells whether a whole number
// is near; if so, the block is computed again exactly as the rule says. The product p is an integer
// in units of 2^-16: the rule's number with 16 fraction bits. With e = 2^-24, half an ulp of 1:
//
//   RANGES     p = t * f with f = 65536 / step (1 + e), t = x - low as in the rule. For quotients
//              up to 256: |p - 65536 t / step| <= 2^24 (2 e + e^2) < 2.001; the rule's own quotient
//              is rounded: 2^24 e = 1; the conversion to an integer: 0.5. Together < 3.6.
//   UNIT       p = fma(x, A, B) with A = 65536 / step (1 + e); B is exact. For values up to 128.5:
//              A's rounding 0.51, the sum's 0.5, the conversion's 0.5, the rule's doubles 2^-28.
//   DIRECTION  p = x * f with f = 65536 * 127 / length (1 + e). For values up to 128: f's rounding
//              0.5, the product's 0.5, the conversion's 0.5, the rule's doubles 2^-28.
//
// So kRangesDoubt = 4 and kDoubt = 2 are enough: a value that is at least this far from a whole
// number is on the same side of it in the product and in the rule's number. One value in 8,192 is
// nearer, or in 16,384. UNIT and DIRECTION drop the fraction of negative numbers, too, so they add
// 1 to these after they are rounded down. For DIRECTION 0 causes no doubt, because both sides of it
// are truncated to 0: many embeddings contain zeros. Values that no int32 holds, and NaN, become
// the smallest int32 in a conversion (on Arm also 0, or the largest), which is a whole number, so
// the rule decides, and detects what is not finite; only DIRECTION has to look for NaN on Arm.
// Steps and factors within [2^-100, 2^100] keep all relevant products and factors normal; others
// are divided.
// embed_quotient_test checks this.
#if defined(QUANTD_EMBED_RECIPES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUANTD_EMBED_RECIPES_INL_H_
#undef QUANTD_EMBED_RECIPES_INL_H_
#else
#define QUANTD_EMBED_RECIPES_INL_H_
#endif

#include <algorithm>

#include "kernels/pack-inl.h"
#include "rules/embeddings.h"

HWY_BEFORE_NAMESPACE();
namespace quantd {
namespace HWY_NAMESPACE {

using D64 = hn::Repartition<double, DF>;
using V64 = hn::Vec<D64>;

inline constexpr size_t kBlock = 4 * N;
inline constexpr float kOne = 65536;  // with 16 fraction bits
inline constexpr int kRangesDoubt = 4;
inline constexpr int kDoubt = 2;  // of UNIT and DIRECTION

struct Four {
  V a, b, c, d;
};
HWY_INLINE Four LoadFour(const uint8_t* x) {
  const DF df;
  const float* floats = As<float>(x);
  return {hn::LoadU(df, floats), hn::LoadU(df, floats + N), hn::LoadU(df, floats + 2 * N),
          hn::LoadU(df, floats + 3 * N)};
}
HWY_INLINE Four LoadFour(const float* x) { return LoadFour(reinterpret_cast<const uint8_t*>(x)); }

// Remembers whether a value was NaN or infinite: only then is its product with 0 not 0. Four sums,
// because each addition waits for that of the previous block.
class Finite {
 public:
  HWY_INLINE Finite() : sums_{hn::Zero(DF()), hn::Zero(DF()), hn::Zero(DF()), hn::Zero(DF())} {}
  HWY_INLINE void Add(const Four& x) {
    const V zero = hn::Zero(DF());
    sums_ = {hn::MulAdd(x.a, zero, sums_.a), hn::MulAdd(x.b, zero, sums_.b),
             hn::MulAdd(x.c, zero, sums_.c), hn::MulAdd(x.d, zero, sums_.d)};
  }
  HWY_INLINE bool All() const {
    const V sum = hn::Add(hn::Add(sums_.a, sums_.b), hn::Add(sums_.c, sums_.d));
    return hn::AllTrue(DF(), hn::Eq(sum, sum));
  }

 private:
  Four sums_;
};

// A product, to which its doubt is already added, as an integer.
HWY_INLINE I ToFixed(V p) {
  // 0x7FFF0000 is a whole number, too.
  if constexpr (!kOverflowIsLowest) p = hn::Min(p, hn::Set(DF(), 32767 * kOne));
  return RoundToInt(p);
}

// The integer parts of two vectors of products, rounded down: those of the first in even lanes.
HWY_INLINE I16 WholeOf(I even, I odd) {
  const DI16 di16;
  return hn::OddEven(hn::BitCast(di16, odd), hn::BitCast(di16, hn::ShiftRight<16>(even)));
}
// The smaller fraction of each lane, in its lower half.
HWY_INLINE hn::Vec<DU16> LeastOf(I a, I b) {
  const DU16 du16;
  return hn::Min(hn::BitCast(du16, a), hn::BitCast(du16, b));
}
HWY_INLINE hn::Vec<DU16> LeastOf(I a, I b, I c, I d) {
  return hn::Min(LeastOf(a, b), LeastOf(c, d));
}

// `least` is the minimum of some fractions: whether one of them is in doubt.
template <int kMost>
HWY_INLINE bool InDoubt(hn::Vec<DU16> least) {
  const DU du;
  static_assert((kMost & (kMost - 1)) == 0);
  const U behind = hn::And(hn::BitCast(du, least), hn::Set(du, 0x10000 - 2 * kMost));
  return !hn::AllFalse(du, hn::Eq(behind, hn::Zero(du)));
}

// Converts whole numbers in [0, 255] to bytes.
HWY_INLINE U8 ToBytes(I a, I b, I c, I d) { return PackBytes(PackInt16(a, b), PackInt16(c, d)); }

// Computes each half of a vector in double with `make`, and truncates the results to
// integers.
template <class Make>
HWY_INLINE I InDouble(V x, Make make) {
  const D64 d64;
  const hn::Half<DF> half;
  const hn::Rebind<int32_t, D64> narrow;
  const auto lower = hn::DemoteTo(narrow, make(hn::PromoteTo(d64, hn::LowerHalf(half, x))));
  const auto upper = hn::DemoteTo(narrow, make(hn::PromoteTo(d64, hn::UpperHalf(half, x))));
  return hn::Combine(DI(), upper, lower);
}

// ---- Recipes: the codes of a block --------------------------------------------------------------
// `i` is the dimension of the first value. `finite` records values that are not finite.

// Padded copies of the arrays for a row that is shorter than a block.
struct ShortArrays {
  alignas(64) float low[kBlock];
  alignas(64) float step[kBlock];
  alignas(64) float factor[kBlock];

  const float* Copy(const float* from, size_t size, float* to, float rest) {
    if (from == nullptr) return nullptr;
    std::fill(std::copy_n(from, size, to), to + kBlock, rest);
    return to;
  }
};

template <bool kDivided>
class Ranges {
 public:
  HWY_INLINE Ranges(const EmbedTile& tile, ShortArrays& arrays)
      : low_(tile.low), step_(tile.step), factor_(tile.factor) {
    if (tile.size >= kBlock) return;
    // Missing values are 0, in the middle of the first bucket.
    low_ = arrays.Copy(low_, tile.size, arrays.low, -0.5f);
    step_ = arrays.Copy(step_, tile.size, arrays.step, 1);
    factor_ = arrays.Copy(factor_, tile.size, arrays.factor, kOne);
  }
  HWY_INLINE void Row(size_t) {}

  HWY_INLINE U8 Block(const Four& x, size_t i, Finite& finite) const {
    if constexpr (kDivided) {
      finite.Add(x);
      return Divide(x, i);
    }
    const Four low = LoadFour(low_ + i);
    const Four factor = LoadFour(factor_ + i);
    const I a = Multiply(x.a, low.a, factor.a);
    const I b = Multiply(x.b, low.b, factor.b);
    const I c = Multiply(x.c, low.c, factor.c);
    const I d = Multiply(x.d, low.d, factor.d);
    if (HWY_UNLIKELY(InDoubt<kRangesDoubt>(LeastOf(a, b, c, d)))) {
      finite.Add(x);
      return Divide(x, i);
    }
    return OrderPairedBytes(NarrowBytes(WholeOf(a, b), WholeOf(c, d)));
  }

  // Blocks of kRows rows, which share loaded values: a block of one row needs 12 loads instead of
  // 6, and loads are the bottleneck. Rows begin every `stride` and `y_stride` bytes. Returns
  // whether all values are finite.
  template <size_t kRows, uint8_t kFlip>
  HWY_INLINE bool Blocks(const uint8_t* x, size_t stride, size_t i, uint8_t* y,
                         size_t y_stride) const {
    I16 codes[kRows][2];
    hn::Vec<DU16> least;
#pragma GCC unroll 2
    for (size_t half = 0; half < 2; ++half) {
      const size_t at = i + half * 2 * N;
      const Two low = InRegisters(LoadTwo(low_ + at));
      const Two factor = InRegisters(LoadTwo(factor_ + at));
#pragma GCC unroll 4
      for (size_t row = 0; row < kRows; ++row) {
        const Two v = LoadTwo(As<float>(x + row * stride) + at);
        const I a = Multiply(v.a, low.a, factor.a);
        const I b = Multiply(v.b, low.b, factor.b);
        codes[row][half] = WholeOf(a, b);
        least = half + row == 0 ? LeastOf(a, b) : hn::Min(least, LeastOf(a, b));
      }
    }
    if (HWY_UNLIKELY(InDoubt<kRangesDoubt>(least))) {
      return DivideRows<kRows, kFlip>(*this, x, stride, i, y, y_stride);
    }
#pragma GCC unroll 4
    for (size_t row = 0; row < kRows; ++row) {
      const U8 bytes = OrderPairedBytes(NarrowBytes(codes[row][0], codes[row][1]));
      hn::StoreU(Flipped<kFlip>(bytes), DU8(), y + row * y_stride + i);
    }
    return true;
  }

 private:
  struct Two {
    V a, b;
  };
  static HWY_INLINE Two LoadTwo(const float* x) {
    return {hn::LoadU(DF(), x), hn::LoadU(DF(), x + N)};
  }

  static HWY_INLINE Two InRegisters(const Two& v) { return {InRegister(v.a), InRegister(v.b)}; }

  template <uint8_t kFlip>
  static HWY_INLINE U8 Flipped(U8 bytes) {
    return kFlip == 0 ? bytes : hn::Xor(bytes, hn::Set(DU8(), kFlip));
  }

  static HWY_INLINE I Multiply(V x, V low, V factor) {
    const DF df;
    // low - x, which is exactly -(x - low): x86 can subtract a memory operand on that side only.
    return ToFixed(hn::NegMulAdd(hn::Sub(low, x), factor, hn::Set(df, kRangesDoubt)));
  }
  // Clamped first, because the bounds are whole numbers.
  static HWY_INLINE I Floor(V x, V low, V step) {
    const DF df;
    const V q = hn::Div(hn::Sub(x, low), step);
    return RoundToInt(hn::Floor(ClampNanLow(q, hn::Zero(df), hn::Set(df, 255))));
  }
  HWY_INLINE U8 Divide(const Four& x, size_t i) const {
    const Four low = LoadFour(low_ + i);
    const Four step = LoadFour(step_ + i);
    return ToBytes(Floor(x.a, low.a, step.a), Floor(x.b, low.b, step.b), Floor(x.c, low.c, step.c),
                   Floor(x.d, low.d, step.d));
  }
  // Not inlined, and with its own copy of the recipe: registers of the loop have no address.
  template <size_t kRows, uint8_t kFlip>
  static HWY_NOINLINE bool DivideRows(Ranges recipe, const uint8_t* x, size_t stride, size_t i,
                                      uint8_t* y, size_t y_stride) {
    Finite finite;
    for (size_t row = 0; row < kRows; ++row) {
      const Four v = LoadFour(x + row * stride + i * sizeof(float));
      finite.Add(v);
      hn::StoreU(Flipped<kFlip>(recipe.Divide(v, i)), DU8(), y + row * y_stride + i);
    }
    return finite.All();
  }

  const float* low_;
  const float* step_;
  const float* factor_;
};

// Converts whole numbers to bytes, saturated to [-128, 127].
HWY_INLINE U8 ToSigned(I a, I b, I c, I d) {
  return OrderBytes(hn::BitCast(DU8(), NarrowSigned(PackInt16(a, b), PackInt16(c, d))));
}
// Numbers that are not whole, rounded towards zero instead of down.
HWY_INLINE I16 TowardsZero(I16 down) { return hn::Sub(down, hn::ShiftRight<15>(down)); }

class Unit {
 public:
  HWY_INLINE Unit(const EmbedTile&, ShortArrays&) {}
  HWY_INLINE void Row(size_t) {}

  HWY_INLINE U8 Block(const Four& x, size_t, Finite& finite) const {
    const I a = Multiply(x.a);
    const I b = Multiply(x.b);
    const I c = Multiply(x.c);
    const I d = Multiply(x.d);
    if (HWY_UNLIKELY(InDoubt<kDoubt>(LeastOf(a, b, c, d)))) {
      finite.Add(x);
      return ToSigned(Divide(x.a), Divide(x.b), Divide(x.c), Divide(x.d));
    }
    return OrderPairedBytes(
        hn::BitCast(DU8(), NarrowSigned(TowardsZero(WholeOf(a, b)), TowardsZero(WholeOf(c, d)))));
  }

 private:
  static HWY_INLINE I Multiply(V x) {
    const DF df;
    constexpr double kFactor = kOne / rules::kUnitStep;
    return ToFixed(hn::MulAdd(x, hn::Set(df, static_cast<float>(kFactor)),
                              hn::Set(df, static_cast<float>(kFactor - 128 * kOne + kDoubt))));
  }
  static HWY_INLINE I Divide(V x) {
    const D64 d64;
    return InDouble(x, [&](V64 v) HWY_ATTR {
      const V64 q = hn::Div(hn::Add(v, hn::Set(d64, 1)), hn::Set(d64, rules::kUnitStep));
      const V64 code = hn::Sub(q, hn::Set(d64, 128));
      const V64 most = hn::Set(d64, 127);
      const V64 number = hn::IfThenElse(hn::Eq(code, code), code, most);
      return hn::Min(hn::Max(number, hn::Set(d64, -128)), most);
    });
  }
};

class Direction {
 public:
  HWY_INLINE Direction(const EmbedTile& tile, ShortArrays&) : lengths_(tile.length) {}
  HWY_INLINE void Row(size_t row) {
    length_ = lengths_[row];
    is_length_ = rules::IsLength(length_);
    const double factor = is_length_ ? 127 / length_ : 0;
    has_factor_ = factor >= 0x1p-100 && factor <= 0x1p100;
    factor_ = has_factor_ ? static_cast<float>(kOne * factor) : 0;
  }

  HWY_INLINE U8 Block(const Four& x, size_t, Finite& finite) const {
    if constexpr (!kOverflowIsLowest) finite.Add(x);
    const I a = Multiply(x.a);
    const I b = Multiply(x.b);
    const I c = Multiply(x.c);
    const I d = Multiply(x.d);
    if (HWY_UNLIKELY(!has_factor_ || (InDoubt<kDoubt>(LeastOf(a, b, c, d)) &&
                                      InDoubt<kDoubt>(LeastOf(Far(a), Far(b), Far(c), Far(d)))))) {
      finite.Add(x);
      if (!is_length_) return hn::Zero(DU8());
      return ToSigned(Divide(x.a), Divide(x.b), Divide(x.c), Divide(x.d));
    }
    // -128 and less become -127, because 1 is added to the saturated number.
    return OrderPairedBytes(
        hn::BitCast(DU8(), RaiseNegative(NarrowSigned(WholeOf(a, b), WholeOf(c, d)))));
  }

 private:
  HWY_INLINE I Multiply(V x) const {
    const DF df;
    return ToFixed(hn::MulAdd(x, hn::Set(df, factor_), hn::Set(df, kDoubt)));
  }
  // Not in doubt if it is next to 0.
  static HWY_INLINE I Far(I p) {
    const DU du;
    return hn::BitCast(DI(), hn::Max(hn::BitCast(du, p), hn::Set(du, 2 * kDoubt)));
  }
  HWY_INLINE I Divide(V x) const {
    const D64 d64;
    const V64 length = hn::Set(d64, length_);
    return InDouble(x, [&](V64 v) HWY_ATTR {
      const V64 most = hn::Set(d64, 127);
      const V64 q = hn::Div(hn::Mul(v, most), length);
      const V64 number = hn::IfThenElseZero(hn::Eq(q, q), q);
      return hn::Min(hn::Max(number, hn::Set(d64, -127)), most);
    });
  }

  const double* lengths_;
  double length_ = 0;
  bool is_length_ = false;
  bool has_factor_ = false;
  float factor_ = 0;
};

}  // namespace HWY_NAMESPACE
}  // namespace quantd
HWY_AFTER_NAMESPACE();

#endif  // QUANTD_EMBED_RECIPES_INL_H_
