// The layouts' kernels on every target against the scalar ones, bit for bit.
#include <cmath>

#include "kernels_test_util.h"
#include "rules/layouts.h"

namespace quantd {
namespace {

// Finite floats that are difficult at a scale of their block's own. Some blocks are zeros of both
// signs, or have values of one sign.
Bytes HardBlocks(std::mt19937& random, size_t block, size_t blocks, size_t misalignment) {
  Bytes x(block * blocks * sizeof(float), misalignment);
  for (size_t b = 0; b < blocks; ++b) {
    const float scale = std::ldexp(1.0f, static_cast<int>(random() % 250) - 148);
    const uint32_t kind = random() % 8;
    for (size_t i = 0; i < block; ++i) {
      float value = HardValue(random, scale);
      if (!std::isfinite(value)) value = scale;
      if (kind == 0) value = std::copysign(0.0f, value);
      if (kind == 1) value = std::fabs(value);
      x.Set(b * block + i, value);
    }
  }
  return x;
}

std::string FirstDifference(const uint8_t* got, const uint8_t* want, size_t size) {
  for (size_t i = 0; i < size; ++i) {
    if (got[i] != want[i]) {
      return "byte " + std::to_string(i) + " is " + std::to_string(got[i]) + ", not " +
             std::to_string(want[i]);
    }
  }
  return "";
}

struct GgufRow {
  const char* name;
  GgufBlock block;
  size_t bytes;
};
const GgufRow kGgufRows[] = {
#define QUANTD_GGUF(block, bytes) {#block, GgufBlock::block, bytes},
#include "kernels/kernels.inc"
};

TEST(LayoutKernels, Gguf) {
  std::mt19937 random = SeededRandom(1124);
  for (const GgufRow& row : kGgufRows) {
    for (size_t i = 0; i < 400; ++i) {
      const size_t blocks = i < 80 ? i : random() % 80;
      const Bytes x = HardBlocks(random, rules::kGgufBlock, blocks, i % 64);
      std::vector<uint8_t> want(blocks * row.bytes);
      const auto kernel = static_cast<size_t>(row.block);
      const bool too_large = ScalarKernels().gguf[kernel](x.data(), blocks, want.data());
      for (const KernelTable* table : TablesUnderTest()) {
        GuardedBytes y(want.size(), i % 61);
        ASSERT_EQ(table->gguf[kernel](x.data(), blocks, y.data()), too_large)
            << table->name << " " << row.name << " of " << blocks;
        ASSERT_TRUE(y.GuardsIntact()) << table->name << " " << row.name;
        ASSERT_EQ(FirstDifference(y.data(), want.data(), want.size()), "")
            << table->name << " " << row.name << " of " << blocks << " blocks";
      }
    }
  }
}

// log2, as FLOAT, of every float next to a power of two.
TEST(LayoutKernels, GgufExponents) {
  for (int k = -125; k <= 128; ++k) {
    const uint32_t power = static_cast<uint32_t>(k + 127) << 23;
    for (uint32_t below = 0; below <= 200; ++below) {
      const auto x = std::bit_cast<float>(power - below);
      if (!std::isfinite(x) || x < 0x1p-125f) continue;
      const auto log = static_cast<float>(std::log2(static_cast<double>(x)));
      ASSERT_EQ(rules::GgufExponent(x), static_cast<int>(std::floor(log)) + 125)
          << std::hexfloat << x;
    }
  }
  EXPECT_EQ(rules::GgufExponent(0), 0);
  EXPECT_EQ(rules::GgufExponent(0x1.fffffep-126f), 0);
  EXPECT_EQ(rules::GgufExponent(0x1p-125f), 0);
  EXPECT_EQ(rules::GgufExponent(0x1p-124f), 1);
}

TEST(LayoutKernels, Bnb) {
  std::mt19937 random = SeededRandom(1125);
  for (size_t kernel = 0; kernel < kBnbTables; ++kernel) {
    for (size_t i = 0; i < 300; ++i) {
      const size_t blocks = i < 40 ? i : random() % 40;
      const Bytes x = HardBlocks(random, rules::kBnbBlock, blocks, i % 64);
      std::vector<uint8_t> want(blocks * rules::kBnbBlock / 2);
      std::vector<float> absmax(blocks);
      ScalarKernels().bnb[kernel](x.data(), blocks, absmax.data(), want.data());
      for (const KernelTable* table : TablesUnderTest()) {
        GuardedBytes y(want.size(), i % 61);
        GuardedBytes largest(blocks * sizeof(float), 0);
        table->bnb[kernel](x.data(), blocks, reinterpret_cast<float*>(largest.data()), y.data());
        ASSERT_TRUE(y.GuardsIntact() && largest.GuardsIntact()) << table->name;
        ASSERT_EQ(FirstDifference(largest.data(), reinterpret_cast<const uint8_t*>(absmax.data()),
                                  largest.size()),
                  "")
            << table->name;
        ASSERT_EQ(FirstDifference(y.data(), want.data(), want.size()), "")
            << table->name << " table " << kernel << " of " << blocks << " blocks";
      }
    }
  }
}

// Every value next to the middle between two codes.
TEST(LayoutKernels, BnbMiddles) {
  for (const auto& [kernel, codes] :
       {std::pair{BnbTable::kNf4, rules::kNf4Table}, std::pair{BnbTable::kFp4, rules::kFp4Table}}) {
    Bytes x(rules::kBnbBlock * sizeof(float), 0);
    for (int i = 0; i < 15; ++i) {
      const float middle = codes.Middle(i);
      x.Set(static_cast<size_t>(4 * i), middle);
      x.Set(static_cast<size_t>(4 * i + 1), std::nextafter(middle, 2.0f));
      x.Set(static_cast<size_t>(4 * i + 2), std::nextafter(middle, -2.0f));
      x.Set(static_cast<size_t>(4 * i + 3), codes.values[codes.order[i]]);
    }
    x.Set<float>(60, 1);
    std::vector<uint8_t> want(rules::kBnbBlock / 2), got(want.size());
    float absmax = 0;
    const auto at = static_cast<size_t>(kernel);
    ScalarKernels().bnb[at](x.data(), 1, &absmax, want.data());
    EXPECT_EQ(absmax, 1);
    for (int i = 0; i < 15; ++i) {
      EXPECT_EQ(want[static_cast<size_t>(2 * i)] >> 4, codes.order[i]);
      EXPECT_EQ(want[static_cast<size_t>(2 * i)] & 15, codes.order[i + 1]);
      EXPECT_EQ(want[static_cast<size_t>(2 * i + 1)] >> 4, codes.order[i]);
    }
    for (const KernelTable* table : TablesUnderTest()) {
      table->bnb[at](x.data(), 1, &absmax, got.data());
      EXPECT_EQ(got, want) << table->name;
    }
  }
}

TEST(LayoutKernels, Largest) {
  std::mt19937 random = SeededRandom(1126);
  for (size_t size = 0; size < 400; ++size) {
    for (const size_t width : {2, 4}) {
      const size_t rows = random() % 4;
      const size_t stride = size * width + random() % 9;
      const size_t bytes = rows == 0 ? 0 : (rows - 1) * stride + size * width;
      Bytes x(bytes, random() % 64);
      // NaN and infinities as well; small sizes, so that the largest is at any place.
      for (size_t i = 0; i < bytes; ++i) x.Set(i, static_cast<uint8_t>(random()));
      const auto of = [&](const KernelTable& table) {
        return (width == 2 ? table.largest16 : table.largest32)(x.data(), rows, size, stride);
      };
      const uint32_t want = of(ScalarKernels());
      for (const KernelTable* table : TablesUnderTest()) {
        ASSERT_EQ(of(*table), want)
            << table->name << " " << rows << " x " << size << " x " << width;
      }
    }
  }
}

}  // namespace
}  // namespace quantd
