// The recipes for embeddings: they compute the codes of a block.
//
// The recipes divide and then drop the fraction, so the slightest error matters where the quotient
// is next to a whole number, and nowhere else. So a fast product first tells whether a whole number
// is near; if so, the block is computed again exactly as the rule says. With e = 2^-24, half an ulp
// of 1:
//
//   RANGES     p = t * f with f = 65536 / step (1 + e), t = x - low as in the rule: an integer
//              with 16 fraction bits, in units of 2^-16. For quotients up to 256:
//              |p - 65536 t / step| <= 2^24 (2 e + e^2) < 2.001; the rule's own quotient is
//              rounded: 2^24 e = 1; the conversion to an integer: 0.5. Together < 3.6, so kDoubt =
//              4 is enough: a value that is 4 units or more from a whole number is on the same
//              side of it in both. One value in 8,192 is nearer.
//   UNIT       p = fma(x, A, B), with a B that is smaller by kUnitDoubt, and one that is larger.
//              For values up to 128.5: A's rounding 129 e, B's nothing, the sum's 128 e: together
//              less than 2^-15.9; the rule's doubles add 2^-44.
//   DIRECTION  p = x * f with f = 127 / length, smaller and larger by 2^-22 of it: f's rounding e
//              and the product's e are half of that.
//
// For UNIT and DIRECTION the rule's number lies between two products; if their integer parts are
// equal, so is its integer part. 0 never causes doubt, because both sides of it are truncated to 0.
// Values that no int32 holds, and NaN, become the smallest int32 in a conversion (on Arm also 0, or
// the largest). For RANGES that is a whole number, and UNIT and DIRECTION look for its code, so
// that the rule decides, and detects what is not finite. Steps and factors within [2^-100, 2^100]
// keep all relevant products and factors normal; others are divided. embed_quotient_test checks
// this.
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
inline constexpr float kOne = 65536;  // of RANGES, with 16 fraction bits
inline constexpr int kDoubt = 4;
inline constexpr double kUnitDoubt = 0x1p-15;
inline constexpr double kDirectionDoubt = 0x1p-22;  // relative to the number

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

// For RANGES, where kDoubt is already added to the numbers: the codes of two vectors, and the
// fraction in the lower half of each lane.
struct Pair {
  I16 codes;  // of the first vector in even lanes, of the second in odd lanes
  hn::Vec<DU16> least;

  HWY_INLINE Pair(I even, I odd) {
    const DI16 di16;
    const DU16 du16;
    codes = hn::OddEven(hn::BitCast(di16, odd), hn::BitCast(di16, hn::ShiftRight<16>(even)));
    least = hn::Min(hn::BitCast(du16, even), hn::BitCast(du16, odd));
  }
};

// `least` is the minimum of some numbers: whether one of them is in doubt.
HWY_INLINE bool InDoubt(hn::Vec<DU16> least) {
  const DU du;
  static_assert(2 * kDoubt == 1 << 3);
  const U behind = hn::And(hn::BitCast(du, least), hn::Set(du, 0xFFF8));
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
    const Pair ab = Multiply(x.a, x.b, LoadTwo(low_ + i), LoadTwo(factor_ + i));
    const Pair cd = Multiply(x.c, x.d, LoadTwo(low_ + i + 2 * N), LoadTwo(factor_ + i + 2 * N));
    if (HWY_UNLIKELY(InDoubt(hn::Min(ab.least, cd.least)))) {
      finite.Add(x);
      return Divide(x, i);
    }
    return PackPairedBytes(ab.codes, cd.codes);
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
        const Pair pair = Multiply(v.a, v.b, low, factor);
        codes[row][half] = pair.codes;
        least = half + row == 0 ? pair.least : hn::Min(least, pair.least);
      }
    }
    if (HWY_UNLIKELY(InDoubt(least))) {
      return DivideRows<kRows, kFlip>(*this, x, stride, i, y, y_stride);
    }
#pragma GCC unroll 4
    for (size_t row = 0; row < kRows; ++row) {
      const U8 bytes = PackPairedBytes(codes[row][0], codes[row][1]);
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

  static HWY_INLINE Pair Multiply(V a, V b, const Two& low, const Two& factor) {
    return {Multiply(a, low.a, factor.a), Multiply(b, low.b, factor.b)};
  }
  static HWY_INLINE I Multiply(V x, V low, V factor) {
    const DF df;
    // low - x, which is exactly -(x - low): x86 can subtract a memory operand on that side only.
    V p = hn::NegMulAdd(hn::Sub(low, x), factor, hn::Set(df, kDoubt));
    // 0x7FFF0000, which is in doubt like the others.
    if constexpr (!kOverflowIsLowest) p = hn::Min(p, hn::Set(df, 32767 * kOne));
    return RoundToInt(p);
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

// The integer parts of four vectors, saturated to int16.
struct Whole {
  I16 ab, cd;

  template <class Make>
  HWY_INLINE Whole(const Four& x, Make make) {
    ab = PackInt16(TruncateToInt(make(x.a)), TruncateToInt(make(x.b)));
    cd = PackInt16(TruncateToInt(make(x.c)), TruncateToInt(make(x.d)));
  }
  HWY_INLINE I8 Codes() const { return NarrowSigned(ab, cd); }
};

HWY_INLINE bool AreSame(I8 a, I8 b) { return hn::AllTrue(DI8(), hn::Eq(a, b)); }
HWY_INLINE U8 Ordered(I8 codes) { return OrderBytes(hn::BitCast(DU8(), codes)); }
HWY_INLINE U8 ToSigned(I a, I b, I c, I d) {
  return Ordered(NarrowSigned(PackInt16(a, b), PackInt16(c, d)));
}

class Unit {
 public:
  HWY_INLINE Unit(const EmbedTile&, ShortArrays&) {}
  HWY_INLINE void Row(size_t) {}

  HWY_INLINE U8 Block(const Four& x, size_t, Finite& finite) const {
    if constexpr (!kOverflowIsLowest) finite.Add(x);
    const Whole less(x, [](V v) HWY_ATTR { return Multiply(v, -kUnitDoubt); });
    const Whole more(x, [](V v) HWY_ATTR { return Multiply(v, kUnitDoubt); });
    const I8 codes = less.Codes();
    if (HWY_UNLIKELY(!AreSame(codes, more.Codes()) || AnyLowest(less.ab, less.cd))) {
      finite.Add(x);
      return ToSigned(Divide(x.a), Divide(x.b), Divide(x.c), Divide(x.d));
    }
    return Ordered(codes);
  }

 private:
  static HWY_INLINE V Multiply(V x, double more) {
    const DF df;
    constexpr double kFactor = 1 / rules::kUnitStep;
    const V p = hn::MulAdd(x, hn::Set(df, static_cast<float>(kFactor)),
                           hn::Set(df, static_cast<float>(kFactor - 128 + more)));
    // NaN gets the largest code. Only after the product, which makes signalling NaNs quiet.
    return kOverflowIsLowest ? p : MinSkipNan(p, hn::Set(df, 128));
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
    less_ = has_factor_ ? static_cast<float>(factor * (1 - kDirectionDoubt)) : 0;
    more_ = has_factor_ ? static_cast<float>(factor * (1 + kDirectionDoubt)) : 0;
  }

  HWY_INLINE U8 Block(const Four& x, size_t, Finite& finite) const {
    if (HWY_UNLIKELY(!is_length_)) {
      finite.Add(x);
      return hn::Zero(DU8());
    }
    if constexpr (!kOverflowIsLowest) finite.Add(x);
    const Whole less(x, [this](V v) HWY_ATTR { return hn::Mul(v, hn::Set(DF(), less_)); });
    const Whole more(x, [this](V v) HWY_ATTR { return hn::Mul(v, hn::Set(DF(), more_)); });
    const I8 codes = hn::Max(more.Codes(), hn::Set(DI8(), -127));
    if (HWY_UNLIKELY(!has_factor_ || !AreSame(codes, less.Codes()))) {
      finite.Add(x);
      return ToSigned(Divide(x.a), Divide(x.b), Divide(x.c), Divide(x.d));
    }
    return Ordered(codes);
  }

 private:
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
  float less_ = 0;
  float more_ = 0;
};

}  // namespace HWY_NAMESPACE
}  // namespace quantd
HWY_AFTER_NAMESPACE();

#endif  // QUANTD_EMBED_RECIPES_INL_H_
