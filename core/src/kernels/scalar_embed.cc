// The scalar table's part for embeddings: plain loops over rules/embeddings.h.
#include <cmath>
#include <cstring>

#include "kernels/simd_targets.h"
#include "rules/embeddings.h"

namespace quantd {
namespace {

float Load(const uint8_t* bytes, size_t index) {
  float value;
  std::memcpy(&value, bytes + index * sizeof(float), sizeof(float));
  return value;
}

// The factor only avoids a division elsewhere: here it divides.
template <Embedder kEmbedder>
uint8_t CodeOf(const EmbedTile& tile, size_t row, size_t i, float x) {
  if constexpr (kEmbedder == Embedder::kUnit) return rules::UnitCode(x).code;
  if constexpr (kEmbedder == Embedder::kDirection) {
    return rules::DirectionCode(x, tile.length[row]).code;
  }
  return rules::RangeCode(x, tile.low[i], tile.step[i]).code;
}

template <Embedder kEmbedder>
bool Embed(const EmbedTile& tile) {
  bool non_finite = false;
  for (size_t row = 0; row < tile.rows; ++row) {
    const uint8_t* x = tile.x + row * tile.stride * sizeof(float);
    uint8_t* y = tile.y + row * tile.y_stride;
    for (size_t i = 0; i < tile.size; ++i) {
      const float value = Load(x, i);
      non_finite |= !std::isfinite(value);
      if constexpr (kEmbedder == Embedder::kBits) {
        if (i % 8 == 0) y[i / 8] = tile.flip;
        if (rules::Bit(value, tile.greater_or_equal)) y[i / 8] ^= rules::BitOf(i, tile.lsb_first);
      } else {
        y[i] = CodeOf<kEmbedder>(tile, row, i, value) ^ tile.flip;
      }
    }
  }
  return non_finite;
}

void AddSquares(const uint8_t* x, size_t size, double* sums) {
  rules::Squares squares;
  std::memcpy(squares.sums, sums, sizeof(squares.sums));
  for (size_t i = 0; i < size; ++i) squares.Add(Load(x, i), i);
  std::memcpy(sums, squares.sums, sizeof(squares.sums));
}

void Normalize(const uint8_t* x, size_t size, double length, uint8_t* y) {
  for (size_t i = 0; i < size; ++i) {
    const float value = rules::Normalized(Load(x, i), length);
    std::memcpy(y + i * sizeof(float), &value, sizeof(float));
  }
}

}  // namespace

void FillScalarEmbed(KernelTable& table) {
#define QUANTD_EMBED(embedder) \
  table.embed[static_cast<size_t>(Embedder::embedder)] = Embed<Embedder::embedder>;
#include "kernels/kernels.inc"
  table.add_squares = AddSquares;
  table.normalize = Normalize;
}

}  // namespace quantd
