// Dequantize: converts codes to (code - zero point) * scale in FLOAT.
#include <algorithm>
#include <cstring>

#include "kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/dequantize_codes.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
#include "kernels/decode-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quantd {
namespace HWY_NAMESPACE {

// The scales and zero points of one vector.
struct Factors {
  V scale;
  I zero_point;
};

template <ScaleMode kMode>
HWY_INLINE Factors FactorsAt(const DequantizeTile& tile, size_t k) {
  const bool has_point = tile.zero_point != nullptr;
  if constexpr (kMode == ScaleMode::kRuns) {
    return {hn::Set(DF(), tile.scale[k]), hn::Set(DI(), has_point ? tile.zero_point[k] : 0)};
  } else {
    return {hn::LoadU(DF(), tile.scale + k),
            has_point ? hn::LoadU(DI(), tile.zero_point + k) : hn::Zero(DI())};
  }
}

template <Decoder kDecoder>
HWY_INLINE V DequantizeVector(const uint8_t* x, const Factors& factors) {
  return hn::Mul(Difference<kDecoder>(x, factors.zero_point), factors.scale);
}

// Fewer elements than a vector, with the factors of as many lanes.
template <Decoder kDecoder>
HWY_NOINLINE void DequantizeShort(const uint8_t* x, size_t size, const Factors& factors,
                                  uint8_t* y) {
  alignas(64) uint8_t in[N * kCodeBytes<kDecoder>] = {};
  alignas(64) float out[N];
  std::memcpy(in, x, size * kCodeBytes<kDecoder>);
  hn::Store(DequantizeVector<kDecoder>(in, factors), DF(), out);
  std::memcpy(y, out, size * sizeof(float));
}

template <bool kStream>
HWY_INLINE void Put(V value, float* out) {
  if constexpr (kStream) {
    hn::Stream(value, DF(), out);
  } else {
    hn::StoreU(value, DF(), out);
  }
}

// Elements that use the scale of entry k.
template <Decoder kDecoder, bool kStream>
HWY_INLINE void DequantizeRun(const DequantizeTile& tile, size_t k, const uint8_t* x, size_t size,
                              uint8_t* y) {
  const Factors factors = FactorsAt<ScaleMode::kRuns>(tile, k);
  if (size < N) {
    if (size != 0) DequantizeShort<kDecoder>(x, size, factors, y);
    return;
  }
  constexpr size_t kIn = kCodeBytes<kDecoder>;
  float* out = As<float>(y);
  size_t i = 0;
  if constexpr (kStream) {
    // Streaming stores need alignment: the first vector ends at a boundary, or overlaps the next
    // one.
    i = (N - (reinterpret_cast<uintptr_t>(y) / sizeof(float)) % N) % N;
    if (i != 0) Put<false>(DequantizeVector<kDecoder>(x, factors), out);
  }
  for (; i + 4 * N <= size; i += 4 * N) {
    if constexpr (kStream) FetchAhead<4 * N * kIn>(x + i * kIn);
    for (size_t j = i; j < i + 4 * N; j += N) {
      Put<kStream>(DequantizeVector<kDecoder>(x + j * kIn, factors), out + j);
    }
  }
  for (; i + N <= size; i += N) {
    Put<kStream>(DequantizeVector<kDecoder>(x + i * kIn, factors), out + i);
  }
  if (i == size) return;
  // The last vector overlaps the previous one and writes the same values again.
  i = size - N;
  Put<false>(DequantizeVector<kDecoder>(x + i * kIn, factors), out + i);
}

template <Decoder kDecoder>
HWY_INLINE void DequantizeElements(const DequantizeTile& in_tile) {
  const DequantizeTile tile = in_tile;  // so that the compiler knows that no store changes it
  constexpr ScaleMode kMode = ScaleMode::kPerElement;
  constexpr size_t kIn = kCodeBytes<kDecoder>;
  float* out = As<float>(tile.y);
  size_t i = 0;
  for (; i + N <= tile.size; i += N) {
    hn::StoreU(DequantizeVector<kDecoder>(tile.x + i * kIn, FactorsAt<kMode>(tile, i)), DF(),
               out + i);
  }
  const size_t rest = tile.size - i;
  if (rest == 0) return;
  alignas(64) float scale[N] = {};
  alignas(64) int32_t zero_point[N] = {};
  std::memcpy(scale, tile.scale + i, rest * sizeof(float));
  if (tile.zero_point != nullptr) {
    std::memcpy(zero_point, tile.zero_point + i, rest * sizeof(int32_t));
  }
  DequantizeShort<kDecoder>(tile.x + i * kIn, rest,
                            {hn::Load(DF(), scale), hn::Load(DI(), zero_point)},
                            tile.y + i * sizeof(float));
}

// Runs shorter than a vector: in pieces, with the scales copied for each element.
template <Decoder kDecoder>
HWY_NOINLINE void DequantizeShortRuns(const DequantizeTile& tile) {
  constexpr size_t kPiece = 256;
  float scale[kPiece];
  int32_t zero_point[kPiece];
  for (size_t done = 0; done < tile.size;) {
    DequantizeTile piece = tile;
    piece.x = tile.x + done * kCodeBytes<kDecoder>;
    piece.y = tile.y + done * sizeof(float);
    piece.size = std::min(kPiece, tile.size - done);
    piece.scale = scale;
    if (tile.zero_point != nullptr) piece.zero_point = zero_point;
    size_t left = tile.run - (tile.first + done) % tile.run;
    size_t k = (tile.first + done) / tile.run;
    for (size_t i = 0; i < piece.size; ++k) {
      const size_t count = std::min(left, piece.size - i);
      std::fill_n(scale + i, count, tile.scale[k]);
      if (tile.zero_point != nullptr) std::fill_n(zero_point + i, count, tile.zero_point[k]);
      i += count;
      left = tile.run;
    }
    DequantizeElements<kDecoder>(piece);
    done += piece.size;
  }
}

// Whole runs of kVectors vectors from entry k. Returns the number of elements that are done.
template <Decoder kDecoder, size_t kVectors, bool kStream>
HWY_INLINE size_t DequantizeVectorRuns(const DequantizeTile& tile, size_t k, const uint8_t* x,
                                       size_t size, uint8_t* y) {
  size_t i = 0;
  for (; i + kVectors * N <= size; i += kVectors * N, ++k) {
    const Factors factors = FactorsAt<ScaleMode::kRuns>(tile, k);
    for (size_t j = i; j < i + kVectors * N; j += N) {
      Put<kStream>(DequantizeVector<kDecoder>(x + j * kCodeBytes<kDecoder>, factors),
                   As<float>(y) + j);
    }
  }
  return i;
}

template <Decoder kDecoder, bool kStream>
HWY_INLINE void DequantizeRuns(const DequantizeTile& tile) {
  size_t left = tile.run - tile.first;
  size_t done = 0;
  for (size_t k = 0; done < tile.size; ++k) {
    if (left == tile.run && (tile.run == 2 * N || tile.run == 4 * N) &&
        tile.size - done >= tile.run) {
      const uint8_t* x = tile.x + done * kCodeBytes<kDecoder>;
      uint8_t* y = tile.y + done * sizeof(float);
      const size_t rest = tile.size - done;
      const size_t some = tile.run == 2 * N
                              ? DequantizeVectorRuns<kDecoder, 2, kStream>(tile, k, x, rest, y)
                              : DequantizeVectorRuns<kDecoder, 4, kStream>(tile, k, x, rest, y);
      done += some;
      k += some / tile.run - 1;
      continue;
    }
    const size_t size = std::min(left, tile.size - done);
    DequantizeRun<kDecoder, kStream>(tile, k, tile.x + done * kCodeBytes<kDecoder>, size,
                                     tile.y + done * sizeof(float));
    done += size;
    left = tile.run;
  }
}

// Streaming pays off if most stores are whole aligned vectors: in long runs, or if all runs start
// at a boundary.
HWY_INLINE bool CanStream(const DequantizeTile& tile) {
  const auto address = reinterpret_cast<uintptr_t>(tile.y);
  if (address % sizeof(float) != 0) return false;
  return tile.run >= 64 * N ||
         (address % (N * sizeof(float)) == 0 && tile.run % N == 0 && tile.first % N == 0);
}

template <Decoder kDecoder, ScaleMode kMode>
void Dequantize(const DequantizeTile& tile) {
  if constexpr (kMode == ScaleMode::kPerElement) {
    DequantizeElements<kDecoder>(tile);
  } else if (tile.run < N) {
    DequantizeShortRuns<kDecoder>(tile);
  } else if (tile.stream && CanStream(tile)) {
    DequantizeRuns<kDecoder, true>(tile);
    hwy::FlushStream();
  } else {
    DequantizeRuns<kDecoder, false>(tile);
  }
}

namespace {

template <Decoder kDecoder>
void Set(KernelTable& table) {
  auto& kernels = table.dequantize[static_cast<size_t>(kDecoder)];
  kernels[0] = Dequantize<kDecoder, ScaleMode::kRuns>;
  kernels[1] = Dequantize<kDecoder, ScaleMode::kPerElement>;
}

}  // namespace

void FillDequantize(KernelTable& table) {
#define QUANTD_DEQUANTIZE(decoder) Set<Decoder::decoder>(table);
#include "kernels/kernels.inc"
}

}  // namespace HWY_NAMESPACE
}  // namespace quantd
HWY_AFTER_NAMESPACE();
#endif
