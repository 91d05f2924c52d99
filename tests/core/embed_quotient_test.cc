// The proof, by trial, that RANGES, UNIT and DIRECTION round as the divisions of their rules do.
//
//   core_embed_quotient_test                 every 1,021st step, two seconds
//   core_embed_quotient_test --exhaustive    all of them
//
// kernels/embed_recipes-inl.h explains how a product shows where a division is needed. Only an x
// next to the edge of a bucket, step * n, could end up on the wrong side of it.
// Both sides scale with powers of two, so it is enough to try all 2^23 significands of the step
// against all edges, each with the floats around it, a little further than the product is in doubt.
// UNIT has one step: all floats between -1.1 and 1.1 are tried. DIRECTION divides by a
// double: some lengths are tried.
#include "kernels_test_util.h"
#include "rules/embeddings.h"
#include "significands.h"

namespace quantd {
namespace {

// Floats around each edge. Around edge 255 they are 2^-16 steps apart: from 7 of them on, nothing
// is in doubt.
constexpr int kNeighbours = 9;
constexpr int kEdges = 256;
constexpr size_t kSize = kEdges * kNeighbours;

EmbedKernel Kernel(const KernelTable& table, Embedder embedder) {
  return table.embed[static_cast<size_t>(embedder)];
}

uint64_t CountDifferences(const KernelTable& table, uint32_t begin, uint32_t step_of, float power,
                          float* example) {
  std::vector<float> x(kSize), low(kSize, 0.0f), steps(kSize), factors(kSize);
  std::vector<uint8_t> fast(kSize), slow(kSize);
  uint64_t differences = 0;
  for (uint32_t significand = begin; significand < 1u << 23; significand += step_of) {
    const float step = std::bit_cast<float>(significand | 0x3F800000u) * power;
    std::fill(steps.begin(), steps.end(), step);
    std::fill(factors.begin(), factors.end(), MakeFactor(step));
    for (uint32_t n = 0; n < kEdges; ++n) {
      const uint32_t edge = std::bit_cast<uint32_t>(static_cast<float>(n + 1) * step);
      for (uint32_t i = 0; i < kNeighbours; ++i) {
        x[i * kEdges + n] = std::bit_cast<float>(edge + i - kNeighbours / 2);
      }
    }
    EmbedTile tile;
    tile.x = reinterpret_cast<const uint8_t*>(x.data());
    tile.size = kSize;
    tile.low = low.data();
    tile.step = steps.data();
    tile.factor = factors.data();
    tile.y = slow.data();
    Kernel(table, Embedder::kRangesDivided)(tile);
    tile.y = fast.data();
    Kernel(table, Embedder::kRanges)(tile);
    if (std::memcmp(fast.data(), slow.data(), kSize) == 0) continue;
    for (size_t i = 0; i < kSize; ++i) differences += fast[i] != slow[i];
    *example = step;
  }
  return differences;
}

TEST(EmbedQuotient, RangesAreThoseOfTheDivision) { ExpectNoDifferences("step", CountDifferences); }

TEST(EmbedQuotient, HoldsAtTheEndsOfTheRangeOfSteps) {
  for (const KernelTable* table : TablesUnderTest()) {
    for (const float power : {0x1p-100f, 0x1p-99f, 0x1p-60f, 0x1p60f, 0x1p99f}) {
      float example = 0;
      EXPECT_EQ(CountDifferences(*table, std::random_device()() % 40009, 40009, power, &example),
                0u)
          << table->name << " step " << std::hexfloat << example;
    }
  }
}

// All floats from 2^-30 to 1.1 of both signs (or every 257th); for smaller ones, x + 1 is 1.
TEST(EmbedQuotient, UnitIsTheRule) {
  constexpr size_t kPiece = 4096;
  std::vector<float> x(kPiece);
  std::vector<uint8_t> y(kPiece);
  for (const KernelTable* table : TablesUnderTest()) {
    const uint32_t step = exhaustive ? 1 : 257;
    const uint32_t end = std::bit_cast<uint32_t>(1.1f);
    uint32_t bits = std::bit_cast<uint32_t>(0x1p-30f) + std::random_device()() % step;
    while (bits < end) {
      for (size_t i = 0; i < kPiece; i += 2, bits += step) {
        x[i] = std::bit_cast<float>(bits);
        x[i + 1] = -x[i];
      }
      EmbedTile tile;
      tile.x = reinterpret_cast<const uint8_t*>(x.data());
      tile.y = y.data();
      tile.size = kPiece;
      Kernel(*table, Embedder::kUnit)(tile);
      for (size_t i = 0; i < kPiece; ++i) {
        ASSERT_EQ(y[i], rules::UnitCode(x[i]).code) << table->name << " " << std::hexfloat << x[i];
      }
    }
  }
}

TEST(EmbedQuotient, DirectionIsTheRule) {
  std::mt19937 random = SeededRandom(20261126);
  std::vector<float> x(kSize);
  std::vector<uint8_t> y(kSize);
  for (const KernelTable* table : TablesUnderTest()) {
    for (int round = 0; round < (exhaustive ? 100000 : 300); ++round) {
      const double length =
          std::ldexp(1 + random() * 0x1p-32, static_cast<int>(random() % 120) - 60);
      for (size_t i = 0; i < kSize; ++i) {
        // Next to each code's edge, beyond the last, and on both sides of 0.
        const double quotient = i % 16 == 0 ? std::ldexp(1, -static_cast<int>(random() % 24))
                                            : static_cast<double>(i % 129 + 1);
        const auto edge = static_cast<float>(quotient * length / 127);
        // Products tell sides apart from 2^-15 on: up to 512 floats away.
        const uint32_t neighbours = random() % 2 == 0 ? kNeighbours : 2048;
        x[i] = std::bit_cast<float>(std::bit_cast<uint32_t>(edge) +
                                    static_cast<uint32_t>(random() % neighbours) - neighbours / 2);
        if (random() % 2 == 0) x[i] = -x[i];
      }
      EmbedTile tile;
      tile.x = reinterpret_cast<const uint8_t*>(x.data());
      tile.y = y.data();
      tile.size = kSize;
      tile.length = &length;
      Kernel(*table, Embedder::kDirection)(tile);
      for (size_t i = 0; i < kSize; ++i) {
        ASSERT_EQ(y[i], rules::DirectionCode(x[i], length).code)
            << table->name << " " << std::hexfloat << x[i] << " " << length;
      }
    }
  }
}

}  // namespace
}  // namespace quantd
