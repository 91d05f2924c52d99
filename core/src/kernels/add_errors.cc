// The error report's loop over a piece.
#include "kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/add_errors.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
#include "kernels/convert-inl.h"
#include "kernels/decode-inl.h"
#include "kernels/error_pieces.h"

HWY_BEFORE_NAMESPACE();
namespace quantd {
namespace HWY_NAMESPACE {

using D64 = hn::Repartition<double, DF>;
using V64 = hn::Vec<D64>;

// Decodes the codes of a piece to floats.
template <Decoder kDecoder>
HWY_NOINLINE void DecodePiece(const uint8_t* codes, size_t size, float* values) {
  for (size_t i = 0; i < size; i += N) {
    hn::Store(Difference<kDecoder>(codes + i * kCodeBytes<kDecoder>, hn::Zero(DI())), DF(),
              values + i);
  }
}

HWY_INLINE void Decode(const ErrorTile& tile, const ErrorPiece& piece, float* values) {
  switch (tile.decoder) {
#define QUANTD_DEQUANTIZE(decoder) \
  case Decoder::decoder:           \
    return DecodePiece<Decoder::decoder>(piece.codes, piece.size, values);
#include "kernels/kernels.inc"
  }
}

template <Division kDivision>
HWY_INLINE V RoundFor(V v) {
  if constexpr (kDivision == Division::kDivideFloat16) return RoundToFloat16(v);
  if constexpr (kDivision == Division::kDivideBfloat16) return RoundToBfloat16(v);
  return v;
}

// The sums of the doubles of half a vector: lane i of `kParts` vectors is lane i of ErrorLanes.
inline constexpr size_t kParts = 2 * kErrorLanes / N;
struct Sums {
  V64 signal[kParts];
  V64 noise[kParts];
  V64 largest[kParts];

  HWY_INLINE Sums() {}  // (an implicit one would be compiled for the baseline)

  template <size_t kPart>
  HWY_INLINE void Add(V64 x, V64 value, V64 zero_point, V64 scale) {
    // Not fused, so that all targets get the same result as the plain loop.
    const V64 error = hn::Sub(x, hn::Mul(hn::Sub(value, zero_point), scale));
    signal[kPart] = hn::Add(signal[kPart], hn::Mul(x, x));
    noise[kPart] = hn::Add(noise[kPart], hn::Mul(error, error));
    largest[kPart] = hn::Max(hn::Abs(error), largest[kPart]);
  }
};

// The entries of element i.
template <size_t kStride>
HWY_INLINE V Entries(const float* array, size_t i) {
  if constexpr (kStride == 0) return hn::Set(DF(), array[0]);
  return hn::LoadU(DF(), array + i);
}

// Vector kVector of a step that begins at element i.
template <Division kDivision, size_t kStride, size_t kVector>
HWY_INLINE void AddVector(const ErrorPiece& piece, const ErrorBounds& bounds, const float* values,
                          size_t i, Sums& sums, ErrorLanes& counts) {
  const DF df;
  i += kVector * N;
  const V x = hn::LoadU(df, As<float>(piece.x) + i);
  const V zero_point =
      piece.zero_point == nullptr ? hn::Zero(df) : Entries<kStride>(piece.zero_point, i);

  V t = RoundFor<kDivision>(hn::Div(RoundFor<kDivision>(x), Entries<kStride>(piece.scale, i)));
  V low = hn::Set(df, bounds.low);
  V high = hn::Set(df, bounds.high);
  if (bounds.adds) {
    t = hn::Add(t, zero_point);
  } else {
    low = hn::Sub(low, zero_point);
    high = hn::Sub(high, zero_point);
  }
  if (bounds.rounds) t = hn::Round(t);
  counts.saturated += hn::CountTrue(df, hn::Or(hn::Lt(t, low), hn::Gt(t, high)));
  const auto finite = hn::Lt(hn::Abs(x), hn::Inf(df));
  counts.finite += hn::CountTrue(df, finite);

  // Elements that are not finite add 0 - (0 - zero point) * 0.
  const V parts[4] = {hn::IfThenElseZero(finite, x),
                      hn::IfThenElseZero(finite, hn::Load(df, values + i)), zero_point,
                      hn::IfThenElseZero(finite, Entries<kStride>(piece.dequantize_scale, i))};
  const hn::Half<DF> half;
  const D64 d64;
  const auto lower = [&](V v) HWY_ATTR { return hn::PromoteTo(d64, hn::LowerHalf(half, v)); };
  const auto upper = [&](V v) HWY_ATTR { return hn::PromoteTo(d64, hn::UpperHalf(half, v)); };
  V64 x_lower = lower(parts[0]);
  V64 x_upper = upper(parts[0]);
  if (piece.int32 != nullptr) {
    const DI di;
    const hn::Half<DI> half_int;
    const I exact =
        hn::IfThenElseZero(hn::RebindMask(di, finite), hn::LoadU(di, As<int32_t>(piece.int32) + i));
    x_lower = hn::PromoteTo(d64, hn::LowerHalf(half_int, exact));
    x_upper = hn::PromoteTo(d64, hn::UpperHalf(half_int, exact));
  }
  sums.template Add<(2 * kVector) % kParts>(x_lower, lower(parts[1]), lower(parts[2]),
                                            lower(parts[3]));
  sums.template Add<(2 * kVector + 1) % kParts>(x_upper, upper(parts[1]), upper(parts[2]),
                                                upper(parts[3]));
}

template <Division kDivision, size_t kStride>
HWY_NOINLINE void AddPieceOf(const ErrorTile& tile, const ErrorPiece& piece, const float* values,
                             ErrorLanes& lanes) {
  const D64 d64;
  constexpr size_t kWidth = N / 2;
  const ErrorBounds bounds = BoundsOf(tile);
  Sums sums;
  for (size_t part = 0; part < kParts; ++part) {
    sums.signal[part] = hn::LoadU(d64, lanes.signal + part * kWidth);
    sums.noise[part] = hn::LoadU(d64, lanes.noise + part * kWidth);
    sums.largest[part] = hn::LoadU(d64, lanes.largest + part * kWidth);
  }
  ErrorLanes counts;
  for (size_t i = 0; i < piece.size; i += kErrorStep) {
    AddVector<kDivision, kStride, 0>(piece, bounds, values, i, sums, counts);
    if constexpr (kErrorStep > N) {
      AddVector<kDivision, kStride, 1>(piece, bounds, values, i, sums, counts);
    }
    if constexpr (kErrorStep > 2 * N) {
      AddVector<kDivision, kStride, 2>(piece, bounds, values, i, sums, counts);
      AddVector<kDivision, kStride, 3>(piece, bounds, values, i, sums, counts);
    }
  }
  for (size_t part = 0; part < kParts; ++part) {
    hn::StoreU(sums.signal[part], d64, lanes.signal + part * kWidth);
    hn::StoreU(sums.noise[part], d64, lanes.noise + part * kWidth);
    hn::StoreU(sums.largest[part], d64, lanes.largest + part * kWidth);
  }
  lanes.finite += counts.finite;
  lanes.saturated += counts.saturated;
}

template <size_t kStride>
HWY_INLINE void AddPieceWith(const ErrorTile& tile, const ErrorPiece& piece, const float* values,
                             ErrorLanes& lanes) {
  switch (tile.division) {
    case Division::kDivideFloat16:
      return AddPieceOf<Division::kDivideFloat16, kStride>(tile, piece, values, lanes);
    case Division::kDivideBfloat16:
      return AddPieceOf<Division::kDivideBfloat16, kStride>(tile, piece, values, lanes);
    default:
      return AddPieceOf<Division::kDivide, kStride>(tile, piece, values, lanes);
  }
}

void AddPiece(const ErrorTile& tile, const ErrorPiece& piece, ErrorLanes& lanes) {
  alignas(64) float values[kErrorPiece];
  Decode(tile, piece, values);
  if (piece.stride == 0) {
    AddPieceWith<0>(tile, piece, values, lanes);
  } else {
    AddPieceWith<1>(tile, piece, values, lanes);
  }
}

void AddErrorsHere(const ErrorTile& tile, ErrorLanes& lanes) {
  ForEachErrorPiece(tile, AddPiece, lanes);
}

void FillErrors(KernelTable& table) { table.add_errors = AddErrorsHere; }

}  // namespace HWY_NAMESPACE
}  // namespace quantd
HWY_AFTER_NAMESPACE();
#endif
