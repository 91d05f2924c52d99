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

template <class Recipe, uint8_t kFlip>
bool EmbedBytes(const EmbedTile& tile) {
  if (tile.size == 0) return false;
  ShortArrays arrays;
  Recipe recipe(tile, arrays);
  Finite finite;
  const U8 flip = hn::Set(DU8(), tile.flip ^ kFlip);
  const auto block = [&](const uint8_t* x, size_t i, uint8_t* y) HWY_ATTR {
    const Four values = LoadFour(x);
    finite.Add(values);
    hn::StoreU(hn::Xor(recipe.Block(values, i), flip), DU8(), y);
  };
  for (size_t row = 0; row < tile.rows; ++row) {
    const uint8_t* const x = tile.x + row * tile.stride * sizeof(float);
    uint8_t* const y = tile.y + row * tile.y_stride;
    recipe.Row(row);
    if (tile.size < kBlock) {
      alignas(64) uint8_t in[kBlock * sizeof(float)] = {};
      alignas(64) uint8_t out[kBlock];
      std::memcpy(in, x, tile.size * sizeof(float));
      block(in, 0, out);
      std::memcpy(y, out, tile.size);
      continue;
    }
    size_t i = 0;
    for (; i + kBlock <= tile.size; i += kBlock) block(x + i * sizeof(float), i, y + i);
    if (i == tile.size) continue;
    // The last block overlaps the one before: the same codes once more.
    i = tile.size - kBlock;
    block(x + i * sizeof(float), i, y + i);
  }
  return !finite.All();
}

template <bool kLsbFirst, bool kOrEqual>
bool EmbedBits(const EmbedTile& tile) {
  Finite finite;
  const Bits flip = static_cast<Bits>(0x0101010101010101u * tile.flip);
  const auto block = [&](const uint8_t* x, uint8_t* y) HWY_ATTR {
    const Four v = LoadFour(x);
    finite.Add(v);
    const Bits bits = SignBits<kLsbFirst, kOrEqual>(v.a, v.b, v.c, v.d) ^ flip;
    std::memcpy(y, &bits, sizeof(bits));
  };
  for (size_t row = 0; row < tile.rows; ++row) {
    const uint8_t* const x = tile.x + row * tile.stride * sizeof(float);
    uint8_t* const y = tile.y + row * tile.y_stride;
    size_t i = 0;
    for (; i + kBlock <= tile.size; i += kBlock) block(x + i * sizeof(float), y + i / 8);
    if (i == tile.size) continue;
    // What is missing is negative: its bits are 0.
    alignas(64) float in[kBlock];
    alignas(64) uint8_t out[sizeof(Bits)];
    const size_t rest = tile.size - i;
    std::fill(in, in + kBlock, -1.0f);
    std::memcpy(in, x + i * sizeof(float), rest * sizeof(float));
    block(reinterpret_cast<const uint8_t*>(in), out);
    std::memcpy(y + i / 8, out, (rest + 7) / 8);
  }
  return !finite.All();
}

bool EmbedAnyBits(const EmbedTile& tile) {
  if (tile.lsb_first) {
    return (tile.greater_or_equal ? EmbedBits<true, true> : EmbedBits<true, false>)(tile);
  }
  return (tile.greater_or_equal ? EmbedBits<false, true> : EmbedBits<false, false>)(tile);
}

// ---- Lengths ------------------------------------------------------------------------------------

void AddSquares(const uint8_t* x, size_t size, double* sums) {
  const DF df;
  const D64 d64;
  const hn::Half<DF> half;
  constexpr size_t kWidth = N / 2;
  constexpr size_t kParts = rules::kSquareSums / kWidth;
  V64 parts[kParts];
  for (size_t part = 0; part < kParts; ++part) parts[part] = hn::LoadU(d64, sums + part * kWidth);
  size_t i = 0;
  for (; i + rules::kSquareSums <= size; i += rules::kSquareSums) {
#pragma GCC unroll 4
    for (size_t part = 0; part < kParts; part += 2) {
      const V v = hn::LoadU(df, As<float>(x) + i + part * kWidth);
      const V64 lower = hn::PromoteTo(d64, hn::LowerHalf(half, v));
      const V64 upper = hn::PromoteTo(d64, hn::UpperHalf(half, v));
      // Squares are exact: fused or not is the same.
      parts[part] = hn::MulAdd(lower, lower, parts[part]);
      parts[part + 1] = hn::MulAdd(upper, upper, parts[part + 1]);
    }
  }
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
      return EmbedBytes<Ranges<false>, 0>;
    case Embedder::kRangesDivided:
      return EmbedBytes<Ranges<true>, 0>;
    case Embedder::kUnit:
      return EmbedBytes<Unit, rules::kSignFlip>;
    case Embedder::kDirection:
      return EmbedBytes<Direction, rules::kSignFlip>;
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
