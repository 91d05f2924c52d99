// The loops of Quantize over blocks, for any division and any encoder. Included once a target.
//
//   x -> Divider (quotient of one vector) -> encoder (codes of a block, stored)
//
// An encoder is a struct made from a tile, with
//   kCodeBytes                     bytes of a code
//   kIsShort                       whether it takes few instructions
//   Points MakePoints(V z[0..3])   what it needs of the zero points of a block's four vectors
//   Store<kStream>(q0..q3, points, y)
#if defined(QUANTD_QUANTIZE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUANTD_QUANTIZE_INL_H_
#undef QUANTD_QUANTIZE_INL_H_
#else
#define QUANTD_QUANTIZE_INL_H_
#endif

#include <algorithm>
#include <cstring>
#include <optional>
#include <type_traits>

#include "kernels/convert-inl.h"
#include "kernels/flush_denormals.h"
#include "kernels/pack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quantd {
namespace HWY_NAMESPACE {

inline constexpr size_t kBlock = 4 * N;  // elements

// The entries of an array of scales for one vector: one for all lanes, or one each.
template <ScaleMode kMode>
HWY_INLINE V Fetch(const float* array, size_t k) {
  if constexpr (kMode == ScaleMode::kRuns) {
    return hn::Set(DF(), array[k]);
  } else {
    return hn::LoadU(DF(), array + k);
  }
}

// ---- Quotients ----------------------------------------------------------------------------------

template <Division kDivision>
struct Divider {
  V scale;
  V zero_point;  // kDivideAndAdd

  template <ScaleMode kMode>
  static HWY_INLINE Divider Make(const QuantizeTile& tile, size_t k) {
    Divider divider{Fetch<kMode>(tile.scale, k), hn::Zero(DF())};
    if (kDivision == Division::kDivideAndAdd && tile.zero_point != nullptr) {
      divider.zero_point = Fetch<kMode>(tile.zero_point, k);
    }
    return divider;
  }

  HWY_INLINE V operator()(V x) const {
    if constexpr (kDivision == Division::kDivideFloat16) {
      return RoundToFloat16(hn::Div(RoundToFloat16(x), scale));
    } else if constexpr (kDivision == Division::kDivideBfloat16) {
      return RoundToBfloat16(hn::Div(RoundToBfloat16(x), scale));
    } else if constexpr (kDivision == Division::kDivideAndAdd) {
      return hn::Add(hn::Div(x, scale), zero_point);
    } else {
      return hn::Div(x, scale);
    }
  }
};

// Not the rounded quotient, but on the same side of every half-integer up to 255.5 (see README.md),
// so that it rounds to the same integer; three times faster than the division.
template <>
struct Divider<Division::kReciprocal> {
  V reciprocal;
  V correction;

  template <ScaleMode kMode>
  static HWY_INLINE Divider Make(const QuantizeTile& tile, size_t k) {
    return {Fetch<kMode>(tile.reciprocal, k), Fetch<kMode>(tile.correction, k)};
  }

  // Wrong (a NaN, or an infinity of the wrong sign) where x or a product is infinite.
  HWY_INLINE V operator()(V x) const { return hn::MulAdd(x, reciprocal, hn::Mul(x, correction)); }
  // Right everywhere. From 300 on one product is enough: no zero point brings it into the range of
  // 8 bits, whose largest |quotient| is 255.
  HWY_INLINE V Anywhere(V x) const {
    const V product = hn::Mul(x, reciprocal);
    const auto is_small = hn::Lt(hn::Abs(product), hn::Set(DF(), 300.0f));
    return hn::IfThenElse(is_small, (*this)(x), product);
  }
};

// ---- One block ----------------------------------------------------------------------------------

template <Division kDivision, class Encoder, bool kStream>
HWY_INLINE void QuantizeBlockInline(const uint8_t* x, const Divider<kDivision>& d0,
                                    const Divider<kDivision>& d1, const Divider<kDivision>& d2,
                                    const Divider<kDivision>& d3,
                                    const typename Encoder::Points& points, const Encoder& encoder,
                                    uint8_t* y) {
  const DF df;
  const float* floats = As<float>(x);
  const V x0 = hn::LoadU(df, floats);
  const V x1 = hn::LoadU(df, floats + N);
  const V x2 = hn::LoadU(df, floats + 2 * N);
  const V x3 = hn::LoadU(df, floats + 3 * N);
  if constexpr (kDivision == Division::kReciprocal && kOverflowIsLowest) {
    // A wrong quotient is a NaN or infinite, and so the lowest integer. Looking for one once a
    // block costs less than a clamp of every x: 57 GB/s instead of 49 at 64 KiB.
    const auto codes = Encoder::Round(d0(x0), d1(x1), d2(x2), d3(x3));
    if (HWY_LIKELY(!AnyLowest(codes.ab, codes.cd))) {
      return encoder.template StoreRounded<kStream>(codes, points, y);
    }
  }
  if constexpr (kDivision == Division::kReciprocal) {
    encoder.template Store<kStream>(d0.Anywhere(x0), d1.Anywhere(x1), d2.Anywhere(x2),
                                    d3.Anywhere(x3), points, y);
  } else {
    encoder.template Store<kStream>(d0(x0), d1(x1), d2(x2), d3(x3), points, y);
  }
}

template <Division kDivision, class Encoder, bool kStream>
HWY_NOINLINE void QuantizeBlockCall(const uint8_t* x, const Divider<kDivision>& d0,
                                    const Divider<kDivision>& d1, const Divider<kDivision>& d2,
                                    const Divider<kDivision>& d3,
                                    const typename Encoder::Points& points, const Encoder& encoder,
                                    uint8_t* y) {
  QuantizeBlockInline<kDivision, Encoder, kStream>(x, d0, d1, d2, d3, points, encoder, y);
}

// A block has a dozen places where it could be inlined. Where it takes hundreds of instructions it
// is called instead: half the code and a fifth of a sanitized build's time, for 5 to 12 % of the
// speed.
template <Division kDivision, class Encoder, bool kStream>
HWY_INLINE void QuantizeBlock(const uint8_t* x, const Divider<kDivision>& d0,
                              const Divider<kDivision>& d1, const Divider<kDivision>& d2,
                              const Divider<kDivision>& d3, const typename Encoder::Points& points,
                              const Encoder& encoder, uint8_t* y) {
  constexpr bool kRounds =
      kDivision == Division::kDivideFloat16 || kDivision == Division::kDivideBfloat16;
  if constexpr (Encoder::kIsShort && !kRounds) {
    QuantizeBlockInline<kDivision, Encoder, kStream>(x, d0, d1, d2, d3, points, encoder, y);
  } else {
    QuantizeBlockCall<kDivision, Encoder, kStream>(x, d0, d1, d2, d3, points, encoder, y);
  }
}

// The zero points of four vectors at entries k0 to k3. kDivideAndAdd has added them already.
template <Division kDivision, class Encoder, ScaleMode kMode>
HWY_INLINE typename Encoder::Points PointsAt(const QuantizeTile& tile, const Encoder& encoder,
                                             size_t k0, size_t k1, size_t k2, size_t k3) {
  const V zero = hn::Zero(DF());
  if (kDivision == Division::kDivideAndAdd || tile.zero_point == nullptr) {
    return encoder.MakePoints(zero, zero, zero, zero);
  }
  return encoder.MakePoints(Fetch<kMode>(tile.zero_point, k0), Fetch<kMode>(tile.zero_point, k1),
                            Fetch<kMode>(tile.zero_point, k2), Fetch<kMode>(tile.zero_point, k3));
}

// ---- Elements that share a scale ----------------------------------------------------------------

// Fewer elements than a block.
template <Division kDivision, class Encoder>
HWY_NOINLINE void QuantizeShort(const QuantizeTile& tile, const Encoder& encoder, size_t k,
                                const uint8_t* x, size_t size, uint8_t* y) {
  alignas(64) uint8_t in[kBlock * sizeof(float)] = {};
  alignas(64) uint8_t out[kBlock * Encoder::kCodeBytes];
  std::memcpy(in, x, size * sizeof(float));
  const auto divider = Divider<kDivision>::template Make<ScaleMode::kRuns>(tile, k);
  const auto points = PointsAt<kDivision, Encoder, ScaleMode::kRuns>(tile, encoder, k, k, k, k);
  QuantizeBlock<kDivision, Encoder, false>(in, divider, divider, divider, divider, points, encoder,
                                           out);
  std::memcpy(y, out, size * Encoder::kCodeBytes);
}

// Elements with the scale of entry k.
template <Division kDivision, class Encoder, bool kStream>
HWY_INLINE void QuantizeRun(const QuantizeTile& tile, const Encoder& encoder, size_t k,
                            const uint8_t* x, size_t size, uint8_t* y) {
  if (size < kBlock) {
    if (size != 0) QuantizeShort<kDivision>(tile, encoder, k, x, size, y);
    return;
  }
  const auto divider = Divider<kDivision>::template Make<ScaleMode::kRuns>(tile, k);
  const auto points = PointsAt<kDivision, Encoder, ScaleMode::kRuns>(tile, encoder, k, k, k, k);
  constexpr size_t kIn = sizeof(float);
  constexpr size_t kOut = Encoder::kCodeBytes;
  size_t i = 0;
  if constexpr (kStream) {
    // Streaming stores need whole aligned vectors: one block anyhow, then on from the next
    // boundary.
    QuantizeBlock<kDivision, Encoder, false>(x, divider, divider, divider, divider, points, encoder,
                                             y);
    i = (kBlock - (reinterpret_cast<uintptr_t>(y) / kOut) % kBlock) % kBlock;
  }
  for (; i + kBlock <= size; i += kBlock) {
    if constexpr (kStream) FetchAhead<kBlock * kIn>(x + i * kIn);
    QuantizeBlock<kDivision, Encoder, kStream>(x + i * kIn, divider, divider, divider, divider,
                                               points, encoder, y + i * kOut);
  }
  if (i == size) return;
  // The last block overlaps the one before: the same codes once more.
  i = size - kBlock;
  QuantizeBlock<kDivision, Encoder, false>(x + i * kIn, divider, divider, divider, divider, points,
                                           encoder, y + i * kOut);
}

// ---- A scale an element -------------------------------------------------------------------------

template <Division kDivision, class Encoder>
HWY_INLINE void QuantizeElementsBlock(const QuantizeTile& tile, const Encoder& encoder, size_t i) {
  constexpr ScaleMode kMode = ScaleMode::kPerElement;
  using D = Divider<kDivision>;
  QuantizeBlock<kDivision, Encoder, false>(
      tile.x + i * sizeof(float), D::template Make<kMode>(tile, i),
      D::template Make<kMode>(tile, i + N), D::template Make<kMode>(tile, i + 2 * N),
      D::template Make<kMode>(tile, i + 3 * N),
      PointsAt<kDivision, Encoder, kMode>(tile, encoder, i, i + N, i + 2 * N, i + 3 * N), encoder,
      tile.y + i * Encoder::kCodeBytes);
}

// Up to kSize entries of each array of scales that a tile has.
template <size_t kSize>
struct ScaleBuffer {
  // Whole vectors are written, so there is room for one more.
  float scale[kSize + N];
  float reciprocal[kSize + N];
  float correction[kSize + N];
  float zero_point[kSize + N];
  size_t size = 0;

  // Entry k of the tile's, `count` times.
  HWY_INLINE void Append(const QuantizeTile& tile, size_t k, size_t count) {
    Fill(tile.scale, k, count, scale);
    if (tile.reciprocal != nullptr) {
      Fill(tile.reciprocal, k, count, reciprocal);
      Fill(tile.correction, k, count, correction);
    }
    if (tile.zero_point != nullptr) Fill(tile.zero_point, k, count, zero_point);
    size += count;
  }
  HWY_INLINE void Use(QuantizeTile& tile) const {
    tile.scale = scale;
    if (tile.reciprocal != nullptr) {
      tile.reciprocal = reciprocal;
      tile.correction = correction;
    }
    if (tile.zero_point != nullptr) tile.zero_point = zero_point;
  }

 private:
  HWY_INLINE void Fill(const float* from, size_t k, size_t count, float* to) const {
    const V value = hn::Set(DF(), from[k]);
    for (size_t i = 0; i < count; i += N) hn::StoreU(value, DF(), to + size + i);
  }
};

template <Division kDivision, class Encoder>
HWY_NOINLINE void QuantizeElements(const QuantizeTile& tile, const Encoder& encoder) {
  if (tile.size >= kBlock) {
    for (size_t i = 0; i + kBlock <= tile.size; i += kBlock) {
      QuantizeElementsBlock<kDivision>(tile, encoder, i);
    }
    if (tile.size % kBlock != 0) {
      QuantizeElementsBlock<kDivision>(tile, encoder, tile.size - kBlock);
    }
    return;
  }
  if (tile.size == 0) return;
  // A block on the stack, filled up with the last element's scales.
  alignas(64) uint8_t in[kBlock * sizeof(float)] = {};
  alignas(64) uint8_t out[kBlock * Encoder::kCodeBytes];
  std::memcpy(in, tile.x, tile.size * sizeof(float));
  ScaleBuffer<kBlock> scales;
  for (size_t i = 0; i < tile.size; ++i) scales.Append(tile, i, 1);
  scales.Append(tile, tile.size - 1, kBlock - tile.size);
  QuantizeTile block = tile;
  scales.Use(block);
  block.x = in;
  block.y = out;
  QuantizeElementsBlock<kDivision>(block, encoder, 0);
  std::memcpy(tile.y, out, tile.size * Encoder::kCodeBytes);
}

// ---- Runs ---------------------------------------------------------------------------------------

// Runs of one or two vectors, from the start of a run: blocks with a scale a vector.
// Returns how many elements are done, a multiple of the run.
template <Division kDivision, class Encoder, size_t kVectors>
HWY_NOINLINE size_t QuantizeVectorRuns(const QuantizeTile& tile, const Encoder& encoder, size_t k,
                                       const uint8_t* x, size_t size, uint8_t* y) {
  using D = Divider<kDivision>;
  constexpr ScaleMode kMode = ScaleMode::kRuns;
  size_t i = 0;
  for (; i + kBlock <= size; i += kBlock, k += 4 / kVectors) {
    const size_t k1 = k + 1 / kVectors;
    const size_t k2 = k + 2 / kVectors;
    const size_t k3 = k + 3 / kVectors;
    QuantizeBlock<kDivision, Encoder, false>(
        x + i * sizeof(float), D::template Make<kMode>(tile, k), D::template Make<kMode>(tile, k1),
        D::template Make<kMode>(tile, k2), D::template Make<kMode>(tile, k3),
        PointsAt<kDivision, Encoder, kMode>(tile, encoder, k, k1, k2, k3), encoder,
        y + i * Encoder::kCodeBytes);
  }
  return i;
}

// Runs shorter than a block that no vector fits: spread over an element each, in pieces.
template <Division kDivision, class Encoder>
HWY_NOINLINE void QuantizeShortRuns(const QuantizeTile& tile, const Encoder& encoder) {
  constexpr size_t kPiece = 256;
  ScaleBuffer<kPiece> scales;
  for (size_t done = 0; done < tile.size; done += scales.size) {
    scales.size = 0;
    const size_t size = std::min(kPiece, tile.size - done);
    size_t left = tile.run - (tile.first + done) % tile.run;
    for (size_t k = (tile.first + done) / tile.run; scales.size < size; ++k) {
      scales.Append(tile, k, std::min(left, size - scales.size));
      left = tile.run;
    }
    QuantizeTile piece = tile;
    scales.Use(piece);
    piece.x = tile.x + done * sizeof(float);
    piece.y = tile.y + done * Encoder::kCodeBytes;
    piece.size = size;
    QuantizeElements<kDivision>(piece, encoder);
  }
}

template <Division kDivision, class Encoder, bool kStream>
HWY_INLINE void QuantizeRuns(const QuantizeTile& tile, const Encoder& encoder) {
  if (tile.run < kBlock && tile.run != N && tile.run != 2 * N) {
    return QuantizeShortRuns<kDivision>(tile, encoder);
  }
  size_t left = tile.run - tile.first;
  size_t done = 0;
  for (size_t k = 0; done < tile.size; ++k) {
    const uint8_t* x = tile.x + done * sizeof(float);
    uint8_t* y = tile.y + done * Encoder::kCodeBytes;
    const size_t rest = tile.size - done;
    if (tile.run < kBlock && left == tile.run && rest >= kBlock) {
      const size_t some =
          tile.run == N ? QuantizeVectorRuns<kDivision, Encoder, 1>(tile, encoder, k, x, rest, y)
                        : QuantizeVectorRuns<kDivision, Encoder, 2>(tile, encoder, k, x, rest, y);
      k += some / tile.run - 1;
      done += some;
      continue;
    }
    const size_t size = std::min(left, rest);
    QuantizeRun<kDivision, Encoder, kStream>(tile, encoder, k, x, size, y);
    done += size;
    left = tile.run;
  }
}

template <Division kDivision, class Encoder, ScaleMode kMode>
HWY_NOINLINE void QuantizeWith(const QuantizeTile& tile) {
  std::optional<FlushDenormals> flush;
  if (kDivision == Division::kReciprocal) flush.emplace();
  const Encoder encoder(tile);
  if constexpr (kMode == ScaleMode::kPerElement) {
    QuantizeElements<kDivision>(tile, encoder);
  } else {
    const bool aligned = reinterpret_cast<uintptr_t>(tile.y) % Encoder::kCodeBytes == 0;
    if (tile.stream && aligned && tile.run >= 16 * kBlock) {
      QuantizeRuns<kDivision, Encoder, true>(tile, encoder);
      hwy::FlushStream();
    } else {
      QuantizeRuns<kDivision, Encoder, false>(tile, encoder);
    }
  }
}

// `WholeEncoder` is for tiles whose bounds are all that 8 bits hold.
template <Division kDivision, class Encoder, class WholeEncoder, ScaleMode kMode>
void Quantize(const QuantizeTile& tile) {
  if (!std::is_same_v<Encoder, WholeEncoder> && tile.maximum - tile.minimum == 255) {
    QuantizeWith<kDivision, WholeEncoder, kMode>(tile);
  } else {
    QuantizeWith<kDivision, Encoder, kMode>(tile);
  }
}

template <Division kDivision, quantd::Encoder kEncoder, class EncoderType,
          class WholeEncoderType = EncoderType>
void SetQuantize(KernelTable& table) {
  auto& kernels = table.quantize[static_cast<size_t>(kDivision)][static_cast<size_t>(kEncoder)];
  kernels[0] = Quantize<kDivision, EncoderType, WholeEncoderType, ScaleMode::kRuns>;
  kernels[1] = Quantize<kDivision, EncoderType, WholeEncoderType, ScaleMode::kPerElement>;
}

}  // namespace HWY_NAMESPACE
}  // namespace quantd
HWY_AFTER_NAMESPACE();

#endif  // QUANTD_QUANTIZE_INL_H_
