// Every conversion of the list on every target against the scalar one, bit for bit, and the values
// that two fused multiply-adds need.
#include "kernels_test_util.h"

namespace quantd {
namespace kernels_convert_test {

using Convert = void (*)(const uint8_t* x, size_t size, uint8_t* y);

struct Row {
  const char* name;
  Convert KernelTable::* convert;
  size_t input_bits;
  size_t output_bits;
};

const Row kRows[] = {
#define QUANTD_CONVERT(name, input_bits, output_bits) \
  {#name, &KernelTable::name, input_bits, output_bits},
#include "kernels/kernels.inc"
};

size_t BytesOf(size_t size, size_t bits) { return (size * bits + 7) / 8; }

class ConvertKernels : public ::testing::TestWithParam<Row> {
 protected:
  void ExpectSameAsScalar(const Bytes& x, size_t size, size_t misalignment) {
    const Row& row = GetParam();
    std::vector<uint8_t> expected(BytesOf(size, row.output_bits));
    (ScalarKernels().*row.convert)(x.data(), size, expected.data());
    for (const KernelTable* table : TablesUnderTest()) {
      GuardedBytes y(expected.size(), misalignment);
      (table->*row.convert)(x.data(), size, y.data());
      ASSERT_TRUE(y.GuardsIntact()) << table->name << " wrote beyond " << size << " elements";
      for (size_t i = 0; i < expected.size(); ++i) {
        if (y.data()[i] == expected[i]) continue;
        // A FLOAT NaN may be any NaN of the same sign.
        if (row.output_bits == 32 && SameNan(expected.data(), y.data(), i / 4)) continue;
        FAIL() << table->name << " " << row.name << " output byte " << i << " of " << size
               << " elements: " << int{y.data()[i]} << ", not " << int{expected[i]};
      }
    }
  }

  static bool SameNan(const uint8_t* a, const uint8_t* b, size_t index) {
    float x;
    float y;
    std::memcpy(&x, a + index * 4, 4);
    std::memcpy(&y, b + index * 4, 4);
    return std::isnan(x) && std::isnan(y) && std::signbit(x) == std::signbit(y);
  }

  std::mt19937 random_ = SeededRandom(20240603);
};

TEST_P(ConvertKernels, EveryLengthAndMisalignment) {
  for (size_t size = 0; size <= 260; ++size) {
    for (size_t misalignment = 0; misalignment < 64; ++misalignment) {
      Bytes x(BytesOf(size, GetParam().input_bits), misalignment);
      for (size_t i = 0; i < x.size(); ++i) x.data()[i] = static_cast<uint8_t>(random_());
      ASSERT_NO_FATAL_FAILURE(ExpectSameAsScalar(x, size, (size + 3 * misalignment) % 64));
    }
  }
}

// All patterns of inputs of up to 16 bits; of FLOAT every sign, exponent and upper mantissa with
// every tie and its neighbours; of INT32 powers of two and their neighbours.
TEST_P(ConvertKernels, EveryPattern) {
  std::vector<uint32_t> patterns;
  for (uint32_t i = 0; i < 1u << 16; ++i) {
    for (const uint32_t low : {0u, 1u, 0xFFFu, 0x1000u, 0x1001u, 0x7FFFu, 0x8000u, 0x8001u}) {
      patterns.push_back(i << 16 | low);
    }
  }
  for (uint32_t bit = 0; bit < 32; ++bit) {
    for (const uint32_t step : {0u, 1u, ~0u}) patterns.push_back((1u << bit) + step);
  }
  Bytes x(patterns.size() * 4, 0);
  std::memcpy(x.data(), patterns.data(), patterns.size() * 4);
  ExpectSameAsScalar(x, patterns.size() * 32 / std::max<size_t>(GetParam().input_bits, 8), 0);

  Bytes all(1 << 17, 0);
  for (size_t i = 0; i < 1 << 16; ++i) all.Set(i, static_cast<uint16_t>(i));
  ExpectSameAsScalar(all, all.size() * 8 / std::max<size_t>(GetParam().input_bits, 8), 0);
}

INSTANTIATE_TEST_SUITE_P(List, ConvertKernels, ::testing::ValuesIn(kRows),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(MakeReciprocals, SameOnEveryTarget) {
  std::mt19937 random = SeededRandom(20240604);
  for (size_t size = 0; size <= 260; ++size) {
    std::vector<float> scale(size);
    for (float& s : scale) s = HardScale(random, true);
    std::vector<float> want[2], got[2];
    for (auto* values : {want, got}) {
      for (size_t i = 0; i < 2; ++i) values[i].assign(size + 1, -1.0f);
    }
    ScalarKernels().make_reciprocals(scale.data(), size, want[0].data(), want[1].data());
    for (const KernelTable* table : TablesUnderTest()) {
      table->make_reciprocals(scale.data(), size, got[0].data(), got[1].data());
      for (size_t i = 0; i < 2; ++i) ASSERT_EQ(got[i], want[i]) << table->name;
    }
  }
}

// unpack and then pack give the same bytes, for all bytes.
TEST(Pack, UndoesUnpack) {
  std::vector<uint8_t> packed(256);
  for (size_t i = 0; i < packed.size(); ++i) packed[i] = static_cast<uint8_t>(i);
  for (const KernelTable* table : TablesUnderTest()) {
    std::vector<uint8_t> codes(1024);
    std::vector<uint8_t> again(256);
    for (const Convert unpack : {table->unpack_uint4, table->unpack_int4}) {
      unpack(packed.data(), 512, codes.data());
      table->pack4(codes.data(), 512, again.data());
      EXPECT_EQ(again, packed);
    }
    table->unpack6(packed.data(), 341, codes.data());
    table->pack6(codes.data(), 341, again.data());
    packed.back() &= 0x3F;  // the last element's 6 bits
    EXPECT_EQ(again, packed);
    packed.back() = 255;
    for (const Convert unpack : {table->unpack_uint2, table->unpack_int2}) {
      unpack(packed.data(), 1024, codes.data());
      table->pack2(codes.data(), 1024, again.data());
      EXPECT_EQ(again, packed);
    }
  }
}

}  // namespace kernels_convert_test
}  // namespace quantd
