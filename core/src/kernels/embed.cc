// Embeddings: the loops over rows, and vectors' lengths.
#include <algorithm>
#include <cstring>

#include "kernels/simd_targets.h"
#include "rules/embeddings.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/embed.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
#include "kernels/embed_recipes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quantd {
namespace HWY_NAMESPACE {

// ---- Rows ---------------------------------------------------------------------------------------

// The rest of a row after its whole blocks; returns whether it was finite. Not inlined, and with
// its own copy of the recipe: registers of its caller have no address.
template <class Recipe>
HWY_NOINLINE bool EmbedRest(Recipe recipe, const uint8_t* x, size_t size, uint8_t flip,
                            uint8_t* y) {
  Finite finite;
  if (size >= kBlock) {
    // The last block overlaps the previous one and writes the same codes again.
    const size_t i = size - kBlock;
    const Four values = LoadFour(x + i * sizeof(float));
    hn::StoreU(hn::Xor(recipe.Block(values, i, finite), hn::Set(DU8(), flip)), DU8(), y + i);
    return finite.All();
  }
  alignas(64) uint8_t in[kBlock * sizeof(float)] = {};
  alignas(64) uint8_t out[kBlock];
  std::memcpy(in, x, size * sizeof(float));
  const Four values = LoadFour(in);
  hn::StoreU(hn::Xor(recipe.Block(values, 0, finite), hn::Set(DU8(), flip)), DU8(), out);
  std::memcpy(y, out, size);
  return finite.All();
}

template <class Recipe>
bool EmbedBytes(const EmbedTile& tile) {
  if (tile.size == 0) return false;
  ShortArrays arrays;
  Recipe recipe(tile, arrays);
  Finite finite;
  bool rest_finite = true;
  const uint8_t flip = tile.flip;
  const size_t size = tile.size;
  for (size_t row = 0; row < tile.rows; ++row) {
    const uint8_t* const x = tile.x + row * tile.stride * sizeof(float);
    uint8_t* const y = tile.y + row * tile.y_stride;
    recipe.Row(row);
    size_t i = 0;
    for (; i + kBlock <= size; i += kBlock) {
      const Four values = LoadFour(x + i * sizeof(float));
      hn::StoreU(hn::Xor(recipe.Block(values, i, finite), hn::Set(DU8(), flip)), DU8(), y + i);
    }
    if (i != size) rest_finite &= EmbedRest(recipe, x, size, flip, y);
  }
  return !rest_finite || !finite.All();
}

// kRows rows from `row` on; returns whether they are finite. The loop reads copies, because the
// compiler must assume that the written codes overlap anything.
template <uint8_t kFlip, size_t kRows>
bool EmbedRanges(const EmbedTile& tile, const Ranges<false> recipe, size_t row) {
  const size_t size = tile.size;
  const size_t y_stride = tile.y_stride;
  const size_t stride = tile.stride * sizeof(float);
  const uint8_t* const x = tile.x + row * stride;
  uint8_t* const y = tile.y + row * y_stride;
  bool finite = true;
  size_t i = 0;
  for (; i + kBlock <= size; i += kBlock) {
    finite &= recipe.template Blocks<kRows, kFlip>(x, stride, i, y, y_stride);
  }
  if (i == size) return finite;
  for (size_t k = 0; k < kRows; ++k) {
    finite &= EmbedRest(recipe, x + k * stride, size, kFlip, y + k * y_stride);
  }
  return finite;
}

template <uint8_t kFlip>
bool EmbedRanges(const EmbedTile& tile) {
  ShortArrays arrays;
  const Ranges<false> recipe(tile, arrays);
  bool finite = true;
  size_t row = 0;
  for (; row + 4 <= tile.rows; row += 4) finite &= EmbedRanges<kFlip, 4>(tile, recipe, row);
  for (; row < tile.rows; ++row) finite &= EmbedRanges<kFlip, 1>(tile, recipe, row);
  return !finite;
}

bool EmbedAnyRanges(const EmbedTile& tile) {
  if (tile.size == 0) return false;
  return tile.flip == 0 ? EmbedRanges<0>(tile) : EmbedRanges<rules::kSignFlip>(tile);
}

// Fewer values than a block. Missing values are negative, so that their bits are 0.
template <bool kLsbFirst, bool kOrEqual>
HWY_NOINLINE bool EmbedBitsRest(const uint8_t* x, size_t size, Bits flip, uint8_t* y) {
  alignas(64) float in[kBlock];
  std::fill(in, in + kBlock, -1.0f);
  std::memcpy(in, x, size * sizeof(float));
  const Four v = LoadFour(in);
  Finite finite;
  finite.Add(v);
  const Bits bits = SignBits<kLsbFirst, kOrEqual>(v.a, v.b, v.c, v.d) ^ flip;
  std::memcpy(y, &bits, (size + 7) / 8);
  return finite.All();
}

template <bool kLsbFirst, bool kOrEqual>
bool EmbedBits(const EmbedTile& tile) {
  Finite finite;
  bool rest_finite = true;
  const Bits flip = static_cast<Bits>(0x0101010101010101u * tile.flip);
  const size_t size = tile.size;
  for (size_t row = 0; row < tile.rows; ++row) {
    const uint8_t* const x = tile.x + row * tile.stride * sizeof(float);
    uint8_t* const y = tile.y + row * tile.y_stride;
    size_t i = 0;
    for (; i + kBlock <= size; i += kBlock) {
      FetchNear<kBlock * sizeof(float)>(x + i * sizeof(float));
      const Four v = LoadFour(x + i * sizeof(float));
      finite.Add(v);
      const Bits bits = SignBits<kLsbFirst, kOrEqual>(v.a, v.b, v.c, v.d) ^ flip;
      std::memcpy(y + i / 8, &bits, sizeof(bits));
    }
    if (i != size) {
      rest_finite &=
          EmbedBitsRest<kLsbFirst, kOrEqual>(x + i * sizeof(float), size - i, flip, y + i / 8);
    }
  }
  return !rest_finite || !finite.All();
}

bool EmbedAnyBits(const EmbedTile& tile) {
  if (tile.lsb_first) {
    return (tile.greater_or_equal ? EmbedBits<true, true> : EmbedBits<true, false>)(tile);
  }
  return (tile.greater_or_equal ? EmbedBits<false, true> : EmbedBits<false, false>)(tile);
}

// ---- Lengths ------------------------------------------------------------------------------------

void AddSquares(const uint8_t* x, size_t size, double* sums) {
  const D64 d64;
  const hn::Half<DF> half;
  constexpr size_t kWidth = N / 2;
  constexpr size_t kParts = rules::kSquareSums / kWidth;
  V64 parts[kParts];
#pragma GCC unroll 8
  for (size_t part = 0; part < kParts; ++part) parts[part] = hn::LoadU(d64, sums + part * kWidth);
  size_t i = 0;
  for (; i + rules::kSquareSums <= size; i += rules::kSquareSums) {
#pragma GCC unroll 8
    for (size_t part = 0; part < kParts; ++part) {
      const V64 v = hn::PromoteTo(d64, hn::LoadU(half, As<float>(x) + i + part * kWidth));
      // Squares are exact, so a fused operation gives the same result.
      parts[part] = hn::MulAdd(v, v, parts[part]);
    }
  }
#pragma GCC unroll 8
  for (size_t part = 0; part < kParts; ++part) hn::StoreU(parts[part], d64, sums + part * kWidth);
  for (; i < size; ++i) {
    float value;
    std::memcpy(&value, x + i * sizeof(float), sizeof(float));
    sums[i % rules::kSquareSums] += static_cast<double>(value) * static_cast<double>(value);
  }
}

void Normalize(const uint8_t* x, size_t size, double length, uint8_t* y) {
  const DF df;
  const D64 d64;
  const hn::Half<DF> half;
  const V64 by = hn::Set(d64, length);
  const auto divide = [&](hn::Vec<hn::Half<DF>> v) HWY_ATTR {
    return hn::DemoteTo(half, hn::Div(hn::PromoteTo(d64, v), by));
  };
  size_t i = 0;
  for (; i + N <= size; i += N) {
    const V v = hn::LoadU(df, As<float>(x) + i);
    const V made = hn::Combine(df, divide(hn::UpperHalf(half, v)), divide(hn::LowerHalf(half, v)));
    hn::StoreU(made, df, As<float>(y) + i);
  }
  for (; i < size; ++i) {
    float value;
    std::memcpy(&value, x + i * sizeof(float), sizeof(float));
    value = static_cast<float>(static_cast<double>(value) / length);
    std::memcpy(y + i * sizeof(float), &value, sizeof(float));
  }
}

namespace {

template <Embedder kEmbedder>
constexpr EmbedKernel KernelOf() {
  switch (kEmbedder) {
    case Embedder::kRanges:
      return EmbedAnyRanges;
    case Embedder::kRangesDivided:
      return EmbedBytes<Ranges<true>>;
    case Embedder::kUnit:
      return EmbedBytes<Unit>;
    case Embedder::kDirection:
      return EmbedBytes<Direction>;
    case Embedder::kBits:
      return EmbedAnyBits;
  }
}

}  // namespace

void FillEmbed(KernelTable& table) {
#define QUANTD_EMBED(embedder) \
  table.embed[static_cast<size_t>(Embedder::embedder)] = KernelOf<Embedder::embedder>();
#include "kernels/kernels.inc"
  table.add_squares = AddSquares;
  table.normalize = Normalize;
}

}  // namespace HWY_NAMESPACE
}  // namespace quantd
HWY_AFTER_NAMESPACE();
#endif
