// Quantizes one block: computes quotients and stores their codes. Included once per target.
//
//   x -> Divider (quotient of one vector) -> encoder (codes of a block, stored)
//
// An encoder is a struct made from a tile, with
//   kCodeBytes                     the bytes of a code
//   kIsShort                       whether it takes few instructions
//   Points MakePoints(V z[0..3])   what it needs of the zero points of a block's four vectors
//   V Prepare(V z)                 zero points in a form in which one is broadcast for free, and
//   Points MakeRunPoints<kVectors>(V p[0..3])   the same from these, `kVectors` equal neighbours
//   Store(q0..q3, points, stream, y)
#if defined(QUANTD_QUANTIZE_BLOCK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUANTD_QUANTIZE_BLOCK_INL_H_
#undef QUANTD_QUANTIZE_BLOCK_INL_H_
#else
#define QUANTD_QUANTIZE_BLOCK_INL_H_
#endif

#include "kernels/convert-inl.h"
#include "kernels/kernel_table.h"
#include "kernels/pack-inl.h"
#include "kernels/reciprocal-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quantd {
namespace HWY_NAMESPACE {

inline constexpr size_t kBlock = 4 * N;  // elements

// The entries of an array of scales for one vector: one for all lanes, or one for each lane.
template <ScaleMode kMode>
HWY_INLINE V Fetch(const float* array, size_t k) {
  if constexpr (kMode == ScaleMode::kRuns) {
    return hn::Set(DF(), array[k]);
  } else {
    return hn::LoadU(DF(), array + k);
  }
}

// ---- Quotients ----------------------------------------------------------------------------------

// Divides by one scale, or by one per lane, from entry k on. For `count` consecutive runs
// Neighbours has N dividers at a time: MoveTo(k, left) moves to the next ones.
template <Division kDivision>
struct Divider {
  V scale;
  V zero_point;  // AddsZeroPoint

  template <ScaleMode kMode>
  static HWY_INLINE Divider Make(const QuantizeTile& tile, size_t k) {
    Divider divider{Fetch<kMode>(tile.scale, k), hn::Zero(DF())};
    if (AddsZeroPoint(kDivision) && tile.zero_point != nullptr) {
      divider.zero_point = Fetch<kMode>(tile.zero_point, k);
    }
    return divider;
  }

  class Neighbours {
   public:
    HWY_INLINE Neighbours(const QuantizeTile& tile, size_t, size_t) : tile_(tile) {}
    HWY_INLINE void MoveTo(size_t k, size_t) { k_ = k; }
    HWY_INLINE Divider At(size_t i) const { return Make<ScaleMode::kRuns>(tile_, k_ + i); }

   private:
    const QuantizeTile& tile_;
    size_t k_ = 0;
  };

  HWY_INLINE V operator()(V x) const {
    if constexpr (kDivision == Division::kDivideFloat16) {
      return RoundToFloat16(hn::Div(RoundToFloat16(x), scale));
    } else if constexpr (kDivision == Division::kDivideBfloat16) {
      return RoundToBfloat16(hn::Div(RoundToBfloat16(x), scale));
    } else if constexpr (kDivision == Division::kDivideAndAdd) {
      return hn::Add(hn::Div(x, scale), zero_point);
    } else if constexpr (kDivision == Division::kDivideAndAddFloat16) {
      const V quotient = RoundToFloat16(hn::Div(RoundToFloat16(x), scale));
      return RoundToFloat16(hn::Add(quotient, zero_point));
    } else if constexpr (kDivision == Division::kDivideAndAddBfloat16) {
      const V quotient = RoundToBfloat16(hn::Div(RoundToBfloat16(x), scale));
      return RoundToBfloat16(hn::Add(quotient, zero_point));
    } else if constexpr (kDivision == Division::kMultiply) {
      return hn::Mul(x, scale);
    } else {
      return hn::Div(x, scale);
    }
  }
};

// Not the rounded quotient, but on the same side of every half-integer up to 255.5
// (reciprocal-inl.h), so that it rounds to the same integer; three times faster than the division.
template <>
struct Divider<Division::kReciprocal> {
  V reciprocal;
  V correction;

  // Scales of single elements are reused in every row: their reciprocals are passed in the tile.
  template <ScaleMode kMode>
  static HWY_INLINE Divider Make(const QuantizeTile& tile, size_t k) {
    if constexpr (kMode == ScaleMode::kPerElement) {
      return {Fetch<kMode>(tile.reciprocal, k), Fetch<kMode>(tile.correction, k)};
    }
    float made[2];
    ReciprocalsOf(tile.scale + k, 1, made, made + 1);
    return {Fetch<kMode>(made, 0), Fetch<kMode>(made, 1)};
  }

  // Made N ahead, so that the divisions overlap with the multiplications.
  class Neighbours {
   public:
    HWY_INLINE Neighbours(const QuantizeTile& tile, size_t k, size_t count) : scale_(tile.scale) {
      Make(k, count, 0);
    }
    HWY_INLINE void MoveTo(size_t k, size_t left) {
      at_ = next_;
      next_ = N - next_;
      if (left > N) Make(k + N, left - N, next_);
    }
    HWY_INLINE Divider At(size_t i) const {
      return {hn::Set(DF(), reciprocal_[at_ + i]), hn::Set(DF(), correction_[at_ + i])};
    }

   private:
    HWY_INLINE void Make(size_t k, size_t count, size_t to) {
      ReciprocalsOf(scale_ + k, HWY_LIKELY(count >= N) ? N : count, reciprocal_ + to,
                    correction_ + to);
    }

    const float* scale_;
    size_t at_ = 0;
    size_t next_ = 0;
    alignas(64) float reciprocal_[2 * N];
    alignas(64) float correction_[2 * N];
  };

  // Wrong (a NaN, or an infinity of the wrong sign) if x or a product is infinite.
  HWY_INLINE V operator()(V x) const { return hn::MulAdd(x, reciprocal, hn::Mul(x, correction)); }
  // Correct for every x. From 300 on one product is enough: no zero point brings it into the range
  // of 8 bits, where the largest |quotient| is 255.
  HWY_INLINE V Anywhere(V x) const {
    const V product = hn::Mul(x, reciprocal);
    const auto is_small = hn::Lt(hn::Abs(product), hn::Set(DF(), 300.0f));
    return hn::IfThenElse(is_small, (*this)(x), product);
  }
};

// ---- One block ----------------------------------------------------------------------------------

template <Division kDivision, class Encoder>
HWY_INLINE void QuantizeBlockInline(const uint8_t* x, const Divider<kDivision>& d0,
                                    const Divider<kDivision>& d1, const Divider<kDivision>& d2,
                                    const Divider<kDivision>& d3,
                                    const typename Encoder::Points& points, const Encoder& encoder,
                                    bool stream, uint8_t* y) {
  const DF df;
  const float* floats = As<float>(x);
  const V x0 = hn::LoadU(df, floats);
  const V x1 = hn::LoadU(df, floats + N);
  const V x2 = hn::LoadU(df, floats + 2 * N);
  const V x3 = hn::LoadU(df, floats + 3 * N);
  if constexpr (kDivision == Division::kReciprocal && kOverflowIsLowest) {
    // A wrong quotient is NaN or infinite, and so becomes the lowest integer. Checking for it once
    // per block costs less than a clamp of every x: 57 GB/s instead of 49 at 64 KiB.
    const I16 ab = PackInt16(RoundToInt(d0(x0)), RoundToInt(d1(x1)));
    const I16 cd = PackInt16(RoundToInt(d2(x2)), RoundToInt(d3(x3)));
    if (HWY_LIKELY(!AnyLowest(ab, cd))) {
      return encoder.StoreRounded(ab, cd, points, stream, y);
    }
  }
  if constexpr (kDivision == Division::kReciprocal) {
    encoder.Store(d0.Anywhere(x0), d1.Anywhere(x1), d2.Anywhere(x2), d3.Anywhere(x3), points,
                  stream, y);
  } else {
    encoder.Store(d0(x0), d1(x1), d2(x2), d3(x3), points, stream, y);
  }
}

template <Division kDivision, class Encoder>
HWY_NOINLINE void QuantizeBlockCall(const uint8_t* x, const Divider<kDivision>& d0,
                                    const Divider<kDivision>& d1, const Divider<kDivision>& d2,
                                    const Divider<kDivision>& d3,
                                    const typename Encoder::Points& points, const Encoder& encoder,
                                    bool stream, uint8_t* y) {
  QuantizeBlockInline<kDivision>(x, d0, d1, d2, d3, points, encoder, stream, y);
}

// A block could be inlined in a dozen places. If it takes hundreds of instructions, it is
// called instead: half the code and a fifth of a sanitized build's time, for 5 to 12 % of the
// speed.
template <Division kDivision, class Encoder>
HWY_INLINE void QuantizeBlock(const uint8_t* x, const Divider<kDivision>& d0,
                              const Divider<kDivision>& d1, const Divider<kDivision>& d2,
                              const Divider<kDivision>& d3, const typename Encoder::Points& points,
                              const Encoder& encoder, bool stream, uint8_t* y) {
  constexpr bool kRounds = PrecisionOf(kDivision) != DataType::kFloat;
  if constexpr (Encoder::kIsShort && !kRounds) {
    QuantizeBlockInline<kDivision>(x, d0, d1, d2, d3, points, encoder, stream, y);
  } else {
    QuantizeBlockCall<kDivision>(x, d0, d1, d2, d3, points, encoder, stream, y);
  }
}

// The zero points of four vectors at entries k0 to k3, unless the division has added them already.
template <Division kDivision, class Encoder, ScaleMode kMode>
HWY_INLINE typename Encoder::Points PointsAt(const QuantizeTile& tile, const Encoder& encoder,
                                             size_t k0, size_t k1, size_t k2, size_t k3) {
  const V zero = hn::Zero(DF());
  if (AddsZeroPoint(kDivision) || tile.zero_point == nullptr) {
    return encoder.MakePoints(zero, zero, zero, zero);
  }
  return encoder.MakePoints(Fetch<kMode>(tile.zero_point, k0), Fetch<kMode>(tile.zero_point, k1),
                            Fetch<kMode>(tile.zero_point, k2), Fetch<kMode>(tile.zero_point, k3));
}

}  // namespace HWY_NAMESPACE
}  // namespace quantd
HWY_AFTER_NAMESPACE();

#endif  // QUANTD_QUANTIZE_BLOCK_INL_H_
