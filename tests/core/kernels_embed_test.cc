// Every Embed kernel of the list, the lengths and the division by them, on every target against the
// scalar ones.
#include "kernels_test_util.h"
#include "rules/embeddings.h"

namespace quantd {
namespace kernels_embed_test {

struct Row {
  const char* name;
  Embedder embedder;
};

const Row kRows[] = {
#define QUANTD_EMBED(embedder) {#embedder, Embedder::embedder},
#include "kernels/kernels.inc"
};

// Finite bounds of a dimension. With `narrow`, its step has a factor.
void HardRange(std::mt19937& random, bool narrow, float& low, float& high) {
  do {
    low = random() % 4 == 0 ? -1.0f : std::ldexp(HardScale(random, true), -8);
    high = random() % 8 == 0 ? low : low + std::fabs(HardScale(random, narrow)) * 255;
    if (random() % 8 == 0) low = -high;
    if (low > high) std::swap(low, high);
  } while (!std::isfinite(low) || !std::isfinite(high) || !std::isfinite(high - low) ||
           (narrow && !HasFactor(rules::RangeStep(low, high))));
}

// A value that is difficult for a recipe, mostly next to an edge of a bucket.
float HardComponent(std::mt19937& random, Embedder embedder, float low, float step) {
  if (random() % 4 == 0) return HardValue(random, 0.1f);
  const auto edge = static_cast<float>(static_cast<int>(random() % 260) - 2);
  const float at = embedder == Embedder::kUnit        ? edge * (2.0f / 255) - 1
                   : embedder == Embedder::kDirection ? (edge - 128) / 127
                                                      : low + edge * step;
  if (random() % 8 == 0) return at;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(at) + static_cast<uint32_t>(random() % 9) -
                              4);
}

class EmbedKernels : public ::testing::TestWithParam<Row> {
 protected:
  Embedder embedder() const { return GetParam().embedder; }

  // Rows of difficult values, or with `quiet` of values in the middle of buckets, on every target.
  void ExpectSameAsScalar(size_t rows, size_t size, size_t cut_off, size_t misalignment,
                          bool quiet) {
    const size_t stride = size + cut_off;
    const bool bits = embedder() == Embedder::kBits;
    const size_t row_bytes = bits ? (size + 7) / 8 : size;
    std::vector<float> low(size), step(size), factor(size);
    for (size_t i = 0; i < size; ++i) {
      float high = 1;
      low[i] = -1;
      if (!quiet) HardRange(random_, embedder() == Embedder::kRanges, low[i], high);
      step[i] = rules::RangeStep(low[i], high);
      factor[i] = MakeFactor(step[i]);
    }
    Bytes x(rows * stride * sizeof(float), misalignment);
    std::vector<double> lengths(rows);
    for (size_t row = 0; row < rows; ++row) {
      rules::Squares squares;
      for (size_t i = 0; i < stride; ++i) {
        float value = std::numeric_limits<float>::quiet_NaN();  // cut off, never used
        if (i < size && quiet) {
          value = (static_cast<float>(random() % 256) + 0.5f) * (2.0f / 255) - 1;
        } else if (i < size) {
          value = HardComponent(random_, embedder(), low[i], step[i]);
        }
        x.Set(row * stride + i, value);
        if (i < size) squares.Add(value, i);
      }
      lengths[row] = random_() % 4 == 0 ? squares.Length() : HardLength();
    }
    EmbedTile tile;
    tile.x = x.data();
    tile.rows = rows;
    tile.size = size;
    tile.stride = stride;
    tile.y_stride = row_bytes;
    tile.low = low.data();
    tile.step = step.data();
    tile.factor = factor.data();
    tile.length = lengths.data();
    tile.flip = random_() % 2 == 0 ? 0 : 0x80;
    tile.lsb_first = random_() % 2 == 0;
    tile.greater_or_equal = random_() % 2 == 0;
    std::vector<uint8_t> want(rows * row_bytes);
    tile.y = want.data();
    const bool want_non_finite = ScalarKernels().embed[static_cast<size_t>(embedder())](tile);
    for (const KernelTable* table : TablesUnderTest()) {
      GuardedBytes y(want.size(), misalignment * 7 % 64);
      tile.y = y.data();
      ASSERT_EQ(table->embed[static_cast<size_t>(embedder())](tile), want_non_finite)
          << table->name << " rows " << rows << " size " << size;
      for (size_t i = 0; i < want.size(); ++i) {
        ASSERT_EQ(y.data()[i], want[i])
            << table->name << " byte " << i << " of rows of " << size << ", value " << std::hexfloat
            << x.Get<float>(i / row_bytes * stride + i % row_bytes) << " low " << low[i % row_bytes]
            << " step " << step[i % row_bytes] << " length " << lengths[i / row_bytes];
      }
      ASSERT_TRUE(y.GuardsIntact()) << table->name << " size " << size;
    }
  }

  double HardLength() {
    constexpr double kSome[] = {1, 0, 5, INFINITY, NAN, 0x1p-149, 0x1p-140, 1e40, 0x1p200, 127};
    return random_() % 2 == 0 ? kSome[random_() % std::size(kSome)]
                              : std::ldexp(1 + random() * 0x1p-40, static_cast<int>(random() % 8));
  }
  uint32_t random() { return static_cast<uint32_t>(random_()); }

  std::mt19937 random_ = SeededRandom(20261122);
};

TEST_P(EmbedKernels, EveryLengthAndMisalignment) {
  for (size_t size = 0; size <= 260; ++size) {
    for (size_t variant = 0; variant < 12; ++variant) {
      const size_t cut_off = variant % 3 == 0 ? 0 : random() % 70;
      ExpectSameAsScalar(1 + random() % 9, size, cut_off, (size * 5 + variant * 11) % 64,
                         variant % 4 == 3);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(EmbedKernels, LongRows) {
  for (size_t variant = 0; variant < 40; ++variant) {
    ExpectSameAsScalar(1 + variant % 9, 3000 + random() % 70, random() % 2 * 33, variant % 64,
                       variant % 2 == 0);
    if (HasFatalFailure()) return;
  }
}

// A single value that is not finite, at every place of a row.
TEST_P(EmbedKernels, SeesNanAndInfinity) {
  constexpr size_t kSize = 150;
  const std::vector<float> low(kSize, -1), step(kSize, 0.01f), factor(kSize, MakeFactor(0.01f));
  const double length = 3;
  for (const KernelTable* table : TablesUnderTest()) {
    for (size_t size = 1; size <= kSize; size += 7) {
      for (size_t at = 0; at <= size; ++at) {
        std::vector<float> x(kSize, 0.3f);
        std::vector<uint8_t> y(kSize);
        x[(at + 1) % size] = 3e38f;
        x[(at + 2) % size] = -0x1p-149f;
        constexpr float kNone[] = {INFINITY, -INFINITY, NAN};
        if (at < size) x[at] = kNone[at % 3];
        EmbedTile tile;
        tile.x = reinterpret_cast<const uint8_t*>(x.data());
        tile.y = y.data();
        tile.size = size;
        tile.low = low.data();
        tile.step = step.data();
        tile.factor = factor.data();
        tile.length = &length;
        ASSERT_EQ(table->embed[static_cast<size_t>(embedder())](tile), at < size)
            << table->name << " size " << size << " at " << at;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(List, EmbedKernels, ::testing::ValuesIn(kRows),
                         [](const auto& row) { return std::string(row.param.name); });

TEST(Embed, SquaresAndNormalize) {
  std::mt19937 random = SeededRandom(20261123);
  for (size_t size = 0; size <= 200; ++size) {
    Bytes x(size * sizeof(float), size % 64);
    for (size_t i = 0; i < size; ++i) x.Set(i, HardValue(random, 0.1f));
    double begin[16];
    for (double& sum : begin) sum = std::ldexp(static_cast<double>(random()), -20);
    const double length = 1 + static_cast<double>(random()) * 0x1p-30;
    std::vector<double> want(begin, begin + 16);
    ScalarKernels().add_squares(x.data(), size, want.data());
    Bytes normalized(size * sizeof(float), 0);
    ScalarKernels().normalize(x.data(), size, length, normalized.data());
    for (const KernelTable* table : TablesUnderTest()) {
      std::vector<double> got(begin, begin + 16);
      table->add_squares(x.data(), size, got.data());
      for (size_t i = 0; i < 16; ++i) {
        const bool same = got[i] == want[i] || (std::isnan(got[i]) && std::isnan(want[i]));
        ASSERT_TRUE(same) << table->name << " size " << size << " sum " << i;
      }
      GuardedBytes y(size * sizeof(float), (size + 5) % 64);
      table->normalize(x.data(), size, length, y.data());
      for (size_t i = 0; i < size; ++i) {
        float value;
        std::memcpy(&value, y.data() + i * sizeof(float), sizeof(float));
        if (std::isnan(normalized.Get<float>(i)) && std::isnan(value)) continue;
        ASSERT_EQ(std::bit_cast<uint32_t>(value), normalized.Get<uint32_t>(i))
            << table->name << " size " << size << " value " << i;
      }
      ASSERT_TRUE(y.GuardsIntact());
    }
  }
}

}  // namespace kernels_embed_test
}  // namespace quantd
