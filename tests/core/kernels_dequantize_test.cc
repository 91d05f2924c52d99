// Every Dequantize kernel of the list on every target against the scalar one, bit for bit (a NaN
// may be any NaN).
#include "kernels_test_util.h"

namespace quantd {
namespace kernels_dequantize_test {

struct Row {
  const char* name;
  Decoder decoder;
  size_t code_bytes() const {
    if (decoder == Decoder::kInt32) return 4;
    return decoder == Decoder::kUint16 || decoder == Decoder::kInt16 ? 2 : 1;
  }
};

const Row kRows[] = {
#define QUANTD_DEQUANTIZE(decoder) {#decoder, Decoder::decoder},
#include "kernels/kernels.inc"
};

class DequantizeKernels : public ::testing::TestWithParam<Row> {
 protected:
  float RandomScale() {
    switch (random_() % 8) {
      case 0: {
        constexpr float kSpecial[] = {0.0f, -0.0f, kInfinity, -kInfinity, 0x1p-149f, 0x1p127f};
        return kSpecial[random_() % std::size(kSpecial)];
      }
      case 1:
        return std::numeric_limits<float>::quiet_NaN();
      default:
        return HardScale(random_, false);
    }
  }

  // FLOAT8 has no zero point but 0.
  int32_t RandomZeroPoint() {
    if (IsFloat8()) return 0;
    if (IsMiniFloat(GetParam().decoder)) return static_cast<int32_t>(random_() % 64);
    switch (random_() % 4) {
      case 0:
        return static_cast<int32_t>(random_());  // an INT32 zero point
      case 1:
        return random_() % 2 == 0 ? INT32_MIN : INT32_MAX;
      default:
        return static_cast<int32_t>(random_() % 256) - 128;
    }
  }

  bool IsFloat8() const {
    return GetParam().decoder >= Decoder::kFloat8E4M3Fn &&
           GetParam().decoder <= Decoder::kFloat8E5M2Fnuz;
  }

  void MakeScales(size_t count) {
    scale_.clear();
    zero_point_.clear();
    for (size_t i = 0; i < count; ++i) {
      scale_.push_back(RandomScale());
      zero_point_.push_back(RandomZeroPoint());
    }
  }

  void ExpectSameAsScalar(DequantizeTile tile, ScaleMode mode, size_t misalignment) {
    const auto kernel = [&](const KernelTable& table) {
      return table.dequantize[static_cast<size_t>(GetParam().decoder)][static_cast<size_t>(mode)];
    };
    std::vector<uint8_t> expected(tile.size * sizeof(float));
    tile.y = expected.data();
    kernel(ScalarKernels())(tile);
    for (const KernelTable* table : TablesUnderTest()) {
      GuardedBytes y(expected.size(), misalignment);
      tile.y = y.data();
      kernel (*table)(tile);
      ASSERT_TRUE(y.GuardsIntact()) << table->name << " wrote beyond " << tile.size << " floats";
      for (size_t i = 0; i < tile.size; ++i) {
        float want;
        float got;
        std::memcpy(&want, expected.data() + i * sizeof(float), sizeof(float));
        std::memcpy(&got, y.data() + i * sizeof(float), sizeof(float));
        if (std::isnan(want) && std::isnan(got)) continue;
        const size_t k = mode == ScaleMode::kRuns ? (tile.first + i) / tile.run : i;
        ASSERT_EQ(std::bit_cast<uint32_t>(got), std::bit_cast<uint32_t>(want))
            << table->name << " " << GetParam().name << " element " << i << " of " << tile.size
            << " first " << tile.first << " run " << tile.run << " code "
            << int{tile.x[i * GetParam().code_bytes()]} << " scale " << tile.scale[k]
            << " zero point " << (tile.zero_point == nullptr ? 0 : tile.zero_point[k]) << ": "
            << got << ", not " << want;
      }
    }
  }

  std::vector<float> scale_;
  std::vector<int32_t> zero_point_;
  std::mt19937 random_ = SeededRandom(20240602);
};

TEST_P(DequantizeKernels, EveryLengthAndMisalignment) {
  const size_t code_bytes = GetParam().code_bytes();
  for (size_t size = 0; size <= 260; ++size) {
    for (size_t variant = 0; variant < 10; ++variant) {
      const ScaleMode mode = variant == 0 ? ScaleMode::kPerElement : ScaleMode::kRuns;
      MakeScales(size + 1);
      DequantizeTile tile;
      tile.scale = scale_.data();
      if (random_() % 4 != 0) tile.zero_point = zero_point_.data();
      tile.size = size;
      tile.run = kRunLengths[variant == 1 ? std::size(kRunLengths) - 1
                                          : random_() % std::size(kRunLengths)];
      tile.first = random_() % 2 == 0 ? 0 : random_() % std::min<size_t>(tile.run, 300);
      Bytes x(size * code_bytes, (size * 5 + variant * 11) % 64);
      for (size_t i = 0; i < x.size(); ++i) x.data()[i] = static_cast<uint8_t>(random_());
      tile.x = x.data();
      ASSERT_NO_FATAL_FAILURE(ExpectSameAsScalar(tile, mode, (size * 7 + variant) % 64));
    }
  }
}

TEST_P(DequantizeKernels, EveryRunAndStart) {
  constexpr size_t kSize = 205;
  Bytes x(kSize * GetParam().code_bytes(), 1);
  for (size_t i = 0; i < x.size(); ++i) x.data()[i] = static_cast<uint8_t>(random_());
  for (size_t run : kRunLengths) {
    for (size_t first = 0; first < std::min<size_t>(run, 34); ++first) {
      MakeScales(kSize + 1);
      DequantizeTile tile;
      tile.x = x.data();
      tile.size = kSize;
      tile.scale = scale_.data();
      if (first % 3 != 0) tile.zero_point = zero_point_.data();
      tile.run = run;
      tile.first = first;
      ASSERT_NO_FATAL_FAILURE(ExpectSameAsScalar(tile, ScaleMode::kRuns, first));
    }
  }
}

TEST_P(DequantizeKernels, StreamingAtEveryMisalignment) {
  for (size_t variant = 0; variant < 256; ++variant) {
    const size_t misalignment = variant % 2 == 0 ? 0 : variant / 2 % 64;
    MakeScales(200);
    DequantizeTile tile;
    tile.size = 2500 + random_() % 300;
    constexpr size_t kRuns[] = {SIZE_MAX / 2, 1024, 128, 32, 16};
    tile.run = kRuns[random_() % std::size(kRuns)];
    tile.first = random_() % std::min<size_t>(tile.run, 600);
    if (misalignment % 8 == 0) tile.first = tile.first / 16 * 16;
    tile.stream = true;
    tile.scale = scale_.data();
    tile.zero_point = zero_point_.data();
    Bytes x(tile.size * GetParam().code_bytes(), 63 - variant % 64);
    for (size_t i = 0; i < x.size(); ++i) x.data()[i] = static_cast<uint8_t>(random_());
    tile.x = x.data();
    ASSERT_NO_FATAL_FAILURE(ExpectSameAsScalar(tile, ScaleMode::kRuns, misalignment));
  }
}

// All codes of one byte, with every zero point that mini floats may have, and all codes of two
// bytes.
TEST_P(DequantizeKernels, EveryCode) {
  const size_t code_bytes = GetParam().code_bytes();
  const size_t size = code_bytes == 1 ? 256 : 1 << 16;
  Bytes x(size * code_bytes, 0);
  for (size_t i = 0; i < size; ++i) {
    if (code_bytes == 1) x.Set(i, static_cast<uint8_t>(i));
    if (code_bytes == 2) x.Set(i, static_cast<uint16_t>(i));
    if (code_bytes == 4) x.Set(i, static_cast<uint32_t>(i * 0x10001));
  }
  for (int32_t zero_point = 0; zero_point < (IsFloat8() ? 1 : 64); ++zero_point) {
    for (const float scale : {1.0f, -0.75f, 0x1p-140f}) {
      DequantizeTile tile;
      tile.x = x.data();
      tile.size = size;
      tile.scale = &scale;
      if (zero_point != 0) tile.zero_point = &zero_point;
      ASSERT_NO_FATAL_FAILURE(ExpectSameAsScalar(tile, ScaleMode::kRuns, 0));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(List, DequantizeKernels, ::testing::ValuesIn(kRows),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(KernelList, HasEveryDequantizeKernelOfTheTables) {
  for (const KernelTable* table : TablesUnderTest()) {
    size_t kernels = 0;
    for (const auto& decoder : table->dequantize) {
      for (const DequantizeKernel kernel : decoder) kernels += kernel != nullptr;
    }
    EXPECT_EQ(kernels, std::size(kRows) * kScaleModes) << table->name;
  }
}

}  // namespace kernels_dequantize_test
}  // namespace quantd
