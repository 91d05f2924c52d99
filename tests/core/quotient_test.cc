// The proof, by trial, that two fused multiply-adds round as the division does.
//
//   core_quotient_test                 every 1,021st scale, a second
//   core_quotient_test --exhaustive    all of them
//
// Division::kReciprocal computes rint(x * rh + x * rl) with rh + rl = 1 / scale, and it must be the
// integer rint(x / scale) wherever 8 bits can hold it: for |x / scale| <= 255.5. Only an x next to
// a tie, scale * (n + 1/2), could round differently. Both sides scale with powers of two, so it is
// enough to try all 2^23 significands of the scale against all ties, each with the three floats
// below and above. The kernels themselves are run, also the kernel that divides, which
// kernels_quantize_test.cc compares with the scalar loops.
#include "kernels_test_util.h"
#include "significands.h"

namespace quantd {
namespace {

constexpr int kTies = 256;      // n + 1/2 for n = 0 to 255
constexpr int kNeighbours = 7;  // 3 ulp around
constexpr size_t kSize = kTies * kNeighbours;

// The floats next to the ties of one scale, 3 ulp below to 3 above.
void MakeTies(float scale, uint8_t* x) {
  uint32_t bits[kSize];
  for (int n = 0; n < kTies; ++n) {
    const uint32_t tie = std::bit_cast<uint32_t>((static_cast<float>(n) + 0.5f) * scale);
    for (int i = 0; i < kNeighbours; ++i) {
      bits[i * kTies + n] = tie + static_cast<uint32_t>(i) - 3u;
    }
  }
  std::memcpy(x, bits, sizeof(bits));
}

// The number of codes that differ between the two divisions, over scales of significand * power,
// with significands from `begin` in steps of `step`.
uint64_t CountDifferences(const KernelTable& table, uint32_t begin, uint32_t step, float power,
                          float* example, bool with_correction = true) {
  const auto kernel = [&](Division division, ScaleMode mode) {
    return table.quantize[static_cast<size_t>(division)][static_cast<size_t>(Encoder::kInteger8)]
                         [static_cast<size_t>(mode)];
  };
  std::vector<uint8_t> x(kSize * sizeof(float)), fast(kSize), slow(kSize);
  std::vector<float> reciprocals(kSize), corrections(kSize, 0.0f);
  uint64_t differences = 0;
  for (uint32_t significand = begin; significand < 1u << 23; significand += step) {
    const float scale = std::bit_cast<float>(significand | 0x3F800000u) * power;
    MakeTies(scale, x.data());
    QuantizeTile tile;
    tile.x = x.data();
    tile.size = kSize;
    tile.scale = &scale;
    tile.minimum = 0;
    tile.maximum = 255;
    tile.y = slow.data();
    kernel(Division::kDivide, ScaleMode::kRuns)(tile);
    tile.y = fast.data();
    if (with_correction) {
      kernel(Division::kReciprocal, ScaleMode::kRuns)(tile);
    } else {
      std::fill(reciprocals.begin(), reciprocals.end(), 1 / scale);
      tile.reciprocal = reciprocals.data();
      tile.correction = corrections.data();
      kernel(Division::kReciprocal, ScaleMode::kPerElement)(tile);
    }
    if (std::memcmp(fast.data(), slow.data(), kSize) == 0) continue;
    for (size_t i = 0; i < kSize; ++i) differences += fast[i] != slow[i];
    *example = scale;
  }
  return differences;
}

TEST(Quotient, TwoFusedMultiplyAddsRoundAsTheDivisionDoes) {
  ExpectNoDifferences("scale", [](auto&&... arguments) { return CountDifferences(arguments...); });
}

// One multiplication by the reciprocal does differ, and this test sees it.
TEST(Quotient, OneMultiplicationDoesNot) {
  for (const KernelTable* table : TablesUnderTest()) {
    if (table == &ScalarKernels()) continue;  // it divides
    float example = 0;
    EXPECT_GT(CountDifferences(*table, 1, 40009, 1.0f, &example, /*with_correction=*/false), 0u);
  }
}

// Powers of two change nothing within the allowed range of scales. Beyond its ends they would
// (denormal products), which is why a plan divides there.
TEST(Quotient, HoldsAtTheEndsOfTheRangeOfScales) {
  for (const KernelTable* table : TablesUnderTest()) {
    for (const float power : {0x1p-100f, 0x1p-99f, 0x1p-60f, 0x1p60f, 0x1p75f, -1.0f, -0x1p-100f}) {
      float example = 0;
      EXPECT_EQ(CountDifferences(*table, std::random_device()() % 40009, 40009, power, &example),
                0u)
          << table->name << " scale " << std::hexfloat << example;
    }
  }
}

}  // namespace
}  // namespace quantd
