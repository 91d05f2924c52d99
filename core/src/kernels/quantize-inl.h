// The loops of Quantize over blocks (quantize_block-inl.h), for any division and encoder. Included
// once per target.
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

#include "kernels/flush_denormals.h"
#include "kernels/quantize_block-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quantd {
namespace HWY_NAMESPACE {

// ---- Elements that share a scale ----------------------------------------------------------------

// A block with one scale.
template <Division kDivision, class Encoder>
HWY_INLINE void QuantizeSame(const uint8_t* x, const Divider<kDivision>& divider,
                             const typename Encoder::Points& points, const Encoder& encoder,
                             bool stream, uint8_t* y) {
  QuantizeBlock<kDivision>(x, divider, divider, divider, divider, points, encoder, stream, y);
}

// Fewer elements than a block.
template <Division kDivision, class Encoder>
HWY_NOINLINE void QuantizeShort(const QuantizeTile& tile, const Encoder& encoder, size_t k,
                                const uint8_t* x, size_t size, uint8_t* y) {
  alignas(64) uint8_t in[kBlock * sizeof(float)] = {};
  alignas(64) uint8_t out[kBlock * Encoder::kCodeBytes];
  std::memcpy(in, x, size * sizeof(float));
  const auto divider = Divider<kDivision>::template Make<ScaleMode::kRuns>(tile, k);
  const auto points = PointsAt<kDivision, Encoder, ScaleMode::kRuns>(tile, encoder, k, k, k, k);
  QuantizeSame<kDivision>(in, divider, points, encoder, false, out);
  std::memcpy(y, out, size * Encoder::kCodeBytes);
}

// Elements that use the scale of entry k.
template <Division kDivision, class Encoder>
HWY_INLINE void QuantizeRun(const QuantizeTile& tile, const Encoder& encoder, size_t k,
                            const uint8_t* x, size_t size, bool stream, uint8_t* y) {
  if (size < kBlock) {
    if (size != 0) QuantizeShort<kDivision>(tile, encoder, k, x, size, y);
    return;
  }
  const auto divider = Divider<kDivision>::template Make<ScaleMode::kRuns>(tile, k);
  const auto points = PointsAt<kDivision, Encoder, ScaleMode::kRuns>(tile, encoder, k, k, k, k);
  constexpr size_t kIn = sizeof(float);
  constexpr size_t kOut = Encoder::kCodeBytes;
  size_t i = 0;
  if (stream) {
    // Streaming stores need whole aligned vectors: one unaligned block, then on from the next
    // boundary.
    QuantizeSame<kDivision>(x, divider, points, encoder, false, y);
    i = (kBlock - (reinterpret_cast<uintptr_t>(y) / kOut) % kBlock) % kBlock;
  }
  for (; i + kBlock <= size; i += kBlock) {
    FetchAhead<kBlock * kIn>(x + i * kIn);
    QuantizeSame<kDivision>(x + i * kIn, divider, points, encoder, stream, y + i * kOut);
  }
  if (i == size) return;
  // The last block overlaps the previous one and writes the same codes again.
  i = size - kBlock;
  QuantizeSame<kDivision>(x + i * kIn, divider, points, encoder, false, y + i * kOut);
}

// ---- One scale per element ----------------------------------------------------------------------

template <Division kDivision, class Encoder>
HWY_INLINE void QuantizeElementsBlock(const QuantizeTile& tile, const Encoder& encoder, size_t i) {
  constexpr ScaleMode kMode = ScaleMode::kPerElement;
  using D = Divider<kDivision>;
  QuantizeBlock<kDivision>(
      tile.x + i * sizeof(float), D::template Make<kMode>(tile, i),
      D::template Make<kMode>(tile, i + N), D::template Make<kMode>(tile, i + 2 * N),
      D::template Make<kMode>(tile, i + 3 * N),
      PointsAt<kDivision, Encoder, kMode>(tile, encoder, i, i + N, i + 2 * N, i + 3 * N), encoder,
      false, tile.y + i * Encoder::kCodeBytes);
}

// Up to kSize entries of each array of scales that a division needs.
template <Division kDivision, size_t kSize>
struct ScaleBuffer {
  // Whole vectors are written, so there is room for one more.
  float scale[kSize + N];
  float reciprocal[kSize + N];
  float correction[kSize + N];
  float zero_point[kSize + N];
  size_t size = 0;

  // Appends entry k of the tile `count` times.
  HWY_INLINE void Append(const QuantizeTile& tile, size_t k, size_t count) {
    if constexpr (kDivision != Division::kReciprocal) {
      Fill(tile.scale, k, count, scale);
    } else {
      Fill(tile.reciprocal, k, count, reciprocal);
      Fill(tile.correction, k, count, correction);
    }
    if (tile.zero_point != nullptr) Fill(tile.zero_point, k, count, zero_point);
    size += count;
  }
  HWY_INLINE void Use(QuantizeTile& tile) const {
    if constexpr (kDivision != Division::kReciprocal) {
      tile.scale = scale;
    } else {
      tile.reciprocal = reciprocal;
      tile.correction = correction;
    }
    if (tile.zero_point != nullptr) tile.zero_point = zero_point;
  }

 private:
  HWY_INLINE void Fill(const float* from, size_t k, size_t count, float* to) const {
    const hn::CappedTag<float, 4> four;
    if (count <= 4) {  // whole vectors would often cross a cache line
      hn::StoreU(hn::Set(four, from[k]), four, to + size);
      return;
    }
    const V value = hn::Set(DF(), from[k]);
    for (size_t i = 0; i < count; i += N) hn::StoreU(value, DF(), to + size + i);
  }
};

template <Division kDivision, class Encoder>
HWY_NOINLINE void QuantizeElements(const QuantizeTile& in_tile, const Encoder& in_encoder) {
  // Copies, so that the compiler knows that no store changes them.
  const QuantizeTile tile = in_tile;
  const Encoder encoder = in_encoder;
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
  // A block on the stack, padded with the last element's scales.
  alignas(64) uint8_t in[kBlock * sizeof(float)] = {};
  alignas(64) uint8_t out[kBlock * Encoder::kCodeBytes];
  std::memcpy(in, tile.x, tile.size * sizeof(float));
  ScaleBuffer<kDivision, kBlock> scales;
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

// The zero points of entries k to k + count - 1 (at most N), in the form that MakeRunPoints
// needs.
template <Division kDivision, class Encoder>
HWY_INLINE void PreparePoints(const QuantizeTile& tile, const Encoder& encoder, size_t k,
                              size_t count, float* prepared) {
  V points = hn::Zero(DF());
  if (!AddsZeroPoint(kDivision) && tile.zero_point != nullptr) {
    if (HWY_LIKELY(count >= N)) {
      points = hn::LoadU(DF(), tile.zero_point + k);
    } else {
      for (size_t i = 0; i < count; ++i) prepared[i] = tile.zero_point[k + i];
      points = hn::Load(DF(), prepared);
    }
  }
  hn::Store(encoder.Prepare(points), DF(), prepared);
}

// Whole runs, from the start of one: each of one vector, of two, or (kVectors = 4) of whole blocks.
// Returns the number of elements that are done, a multiple of the run and of a block.
template <Division kDivision, class Encoder, size_t kVectors>
HWY_NOINLINE size_t QuantizeWholeRuns(const QuantizeTile& in_tile, const Encoder& in_encoder,
                                      size_t k, const uint8_t* x, size_t size, bool stream,
                                      uint8_t* y) {
  // Copies, so that the compiler knows that no store changes them.
  const QuantizeTile tile = in_tile;
  const Encoder encoder = in_encoder;
  using D = Divider<kDivision>;
  constexpr ScaleMode kMode = ScaleMode::kRuns;
  const size_t blocks = kVectors < 4 ? 1 : tile.run / kBlock;  // in a step
  const size_t steps = size / (blocks * kBlock);
  constexpr size_t kRuns = 4 / kVectors;  // in a step
  alignas(64) float prepared[N] = {};
  typename D::Neighbours dividers(tile, k, steps * kRuns);
  for (size_t left = steps * kRuns; left != 0;) {
    const size_t some = std::min(N, left);
    PreparePoints<kDivision>(tile, encoder, k, left, prepared);
    dividers.MoveTo(k, left);
    k += some;
    left -= some;
    for (size_t j = 0; j < some; j += kRuns) {
      const D d0 = dividers.At(j);
      const D d1 = dividers.At(j + 1 / kVectors);
      const D d2 = dividers.At(j + 2 / kVectors);
      const D d3 = dividers.At(j + 3 / kVectors);
      const auto points = encoder.template MakeRunPoints<kVectors>(
          Fetch<kMode>(prepared, j), Fetch<kMode>(prepared, j + 1 / kVectors),
          Fetch<kMode>(prepared, j + 2 / kVectors), Fetch<kMode>(prepared, j + 3 / kVectors));
      size_t blocks_left = blocks;
      do {
        FetchAhead<kBlock * sizeof(float)>(x);
        QuantizeBlock<kDivision>(x, d0, d1, d2, d3, points, encoder, stream, y);
        x += kBlock * sizeof(float);
        y += kBlock * Encoder::kCodeBytes;
      } while (--blocks_left != 0);
    }
  }
  return steps * blocks * kBlock;
}

// Runs shorter than a block that no vector fits: in pieces, with the scales copied for each
// element.
template <Division kDivision, class Encoder>
HWY_NOINLINE void QuantizeShortRuns(const QuantizeTile& tile, const Encoder& encoder) {
  constexpr size_t kPiece = 256;
  ScaleBuffer<kDivision, kPiece> scales;
  for (size_t done = 0; done < tile.size; done += scales.size) {
    scales.size = 0;
    const size_t size = std::min(kPiece, tile.size - done);
    const size_t first = (tile.first + done) % tile.run;
    QuantizeTile piece = tile;
    piece.x = tile.x + done * sizeof(float);
    piece.y = tile.y + done * Encoder::kCodeBytes;
    piece.size = size;
    const size_t k = (tile.first + done) / tile.run;
    piece.scale = tile.scale + k;
    if (tile.zero_point != nullptr) piece.zero_point = tile.zero_point + k;
    [[maybe_unused]] float reciprocal[kPiece], correction[kPiece];
    if constexpr (kDivision == Division::kReciprocal) {
      ReciprocalsOf(piece.scale, (first + size - 1) / tile.run + 1, reciprocal, correction);
      piece.reciprocal = reciprocal;
      piece.correction = correction;
    }
    size_t left = tile.run - first;
    for (size_t i = 0; scales.size < size; ++i) {
      scales.Append(piece, i, std::min(left, size - scales.size));
      left = tile.run;
    }
    scales.Use(piece);
    QuantizeElements<kDivision>(piece, encoder);
  }
}

template <Division kDivision, class Encoder>
HWY_INLINE void QuantizeRuns(const QuantizeTile& tile, const Encoder& encoder) {
  const bool vectors = tile.run == N || tile.run == 2 * N;
  const bool is_long = tile.run >= 16 * kBlock;
  // The overhead of runs is small if a block takes hundreds of instructions.
  const bool blocks = Encoder::kIsShort && !is_long && tile.run % kBlock == 0;
  if (tile.run < kBlock && !vectors) return QuantizeShortRuns<kDivision>(tile, encoder);
  const auto aligned = [](const uint8_t* y, size_t bytes) {
    return reinterpret_cast<uintptr_t>(y) % bytes == 0;
  };
  const bool stream = tile.stream && is_long && aligned(tile.y, Encoder::kCodeBytes);
  size_t left = tile.run - tile.first;
  size_t done = 0;
  for (size_t k = 0; done < tile.size; ++k) {
    const uint8_t* x = tile.x + done * sizeof(float);
    uint8_t* y = tile.y + done * Encoder::kCodeBytes;
    const size_t rest = tile.size - done;
    if ((vectors || blocks) && left == tile.run && rest >= std::max(tile.run, kBlock)) {
      auto whole = tile.run == N ? QuantizeWholeRuns<kDivision, Encoder, 1>
                                 : QuantizeWholeRuns<kDivision, Encoder, 2>;
      if constexpr (Encoder::kIsShort) {
        if (blocks) whole = QuantizeWholeRuns<kDivision, Encoder, 4>;
      }
      const bool stream_blocks = tile.stream && aligned(y, 4 * N);
      const size_t some = whole(tile, encoder, k, x, rest, stream_blocks, y);
      k += some / tile.run - 1;
      done += some;
      continue;
    }
    const size_t size = std::min(left, rest);
    QuantizeRun<kDivision>(tile, encoder, k, x, size, stream, y);
    done += size;
    left = tile.run;
  }
  if (tile.stream) hwy::FlushStream();
}

template <Division kDivision, class Encoder, ScaleMode kMode>
HWY_NOINLINE void QuantizeWith(const QuantizeTile& tile) {
  std::optional<FlushDenormals> flush;
  if (kDivision == Division::kReciprocal) flush.emplace();
  const Encoder encoder(tile);
  if constexpr (kMode == ScaleMode::kPerElement) {
    QuantizeElements<kDivision>(tile, encoder);
  } else {
    QuantizeRuns<kDivision>(tile, encoder);
  }
}

// `WholeEncoder` is for tiles whose bounds are the full range of 8 bits.
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
