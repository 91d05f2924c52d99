// Every Quantize kernel of the list on every target against the scalar one, bit for bit.
#include "kernels_test_util.h"
#include "types/small_float.h"

namespace quantd {
namespace kernels_quantize_test {

struct Row {
  const char* name;
  Division division;
  Encoder encoder;
  bool integer() const { return encoder == Encoder::kInteger8 || encoder == Encoder::kInteger16; }
  size_t code_bytes() const { return encoder == Encoder::kInteger16 ? 2 : 1; }
};

const Row kRows[] = {
#define QUANTD_QUANTIZE(division, encoder) \
  {#division "_" #encoder, Division::division, Encoder::encoder},
#include "kernels/kernels.inc"
};

// The bounds of types: those of 8, 4 and 2 bits and of DynamicQuantize's INT8, or those of 16.
struct Bounds {
  int32_t minimum;
  int32_t maximum;
};
constexpr Bounds kBounds8[] = {{0, 255}, {-128, 127}, {-127, 127}, {0, 15},
                               {-8, 7},  {0, 3},      {-2, 1}};
constexpr Bounds kBounds16[] = {{0, 65535}, {-32768, 32767}};

// The scales of a tile: enough entries for every element.
struct Scales {
  std::vector<float> scale, reciprocal, correction, zero_point;
};

class QuantizeKernels : public ::testing::TestWithParam<Row> {
 protected:
  Scales MakeScales(size_t count, Bounds bounds) {
    Scales scales;
    const bool narrow = GetParam().division == Division::kReciprocal;
    const float one = HardScale(random_, narrow);
    for (size_t i = 0; i < count; ++i) {
      scales.scale.push_back(InPrecision(random_() % 2 == 0 ? one : HardScale(random_, narrow)));
      scales.zero_point.push_back(ZeroPoint(bounds));
    }
    if (narrow) {
      scales.reciprocal.resize(count);
      scales.correction.resize(count);
      ScalarKernels().make_reciprocals(scales.scale.data(), count, scales.reciprocal.data(),
                                       scales.correction.data());
    }
    return scales;
  }

  // Scales are rounded to the precision of the division before, and are still neither 0 nor
  // infinite.
  float InPrecision(float scale) const {
    const float rounded = RoundTo(PrecisionOf(GetParam().division), scale);
    return rounded == 0 || std::isinf(rounded) ? 0.25f : rounded;
  }

  float ZeroPoint(Bounds bounds) {
    if (AddsZeroPoint(GetParam().division) && random_() % 4 == 0) {
      return RoundTo(PrecisionOf(GetParam().division),
                     static_cast<float>(static_cast<int32_t>(random_())));
    }
    if (!GetParam().integer()) return static_cast<float>(static_cast<int>(random_() % 13)) / 2 - 3;
    const auto range = static_cast<uint32_t>(bounds.maximum - bounds.minimum + 1);
    switch (random_() % 4) {
      case 0:
        return static_cast<float>(bounds.minimum);
      case 1:
        return static_cast<float>(bounds.maximum);
      default:
        return static_cast<float>(bounds.minimum + static_cast<int32_t>(random_() % range));
    }
  }

  Bounds RandomBounds() {
    if (GetParam().encoder == Encoder::kInteger8) return kBounds8[random_() % std::size(kBounds8)];
    return kBounds16[random_() % std::size(kBounds16)];
  }

  // A tile without x and y.
  QuantizeTile MakeTile(const Scales& scales, Bounds bounds) {
    QuantizeTile tile;
    tile.scale = scales.scale.data();
    if (!scales.reciprocal.empty()) {
      tile.reciprocal = scales.reciprocal.data();
      tile.correction = scales.correction.data();
    }
    if (random_() % 4 != 0) tile.zero_point = scales.zero_point.data();
    tile.minimum = bounds.minimum;
    tile.maximum = bounds.maximum;
    tile.saturate = random_() % 2 == 0;
    return tile;
  }

  // Runs the tile on every target; y is written at `misalignment`.
  void ExpectSameAsScalar(QuantizeTile tile, ScaleMode mode, size_t misalignment) {
    const Row& row = GetParam();
    const auto kernel = [&](const KernelTable& table) {
      return table.quantize[static_cast<size_t>(row.division)][static_cast<size_t>(row.encoder)]
                           [static_cast<size_t>(mode)];
    };
    const size_t bytes = tile.size * row.code_bytes();
    std::vector<uint8_t> expected(bytes);
    tile.y = expected.data();
    kernel(ScalarKernels())(tile);
    for (const KernelTable* table : TablesUnderTest()) {
      GuardedBytes y(bytes, misalignment);
      tile.y = y.data();
      kernel (*table)(tile);
      ASSERT_TRUE(y.GuardsIntact()) << table->name << " wrote beyond " << tile.size << " codes";
      for (size_t i = 0; i < bytes; ++i) {
        if (y.data()[i] == expected[i]) continue;
        const size_t element = i / row.code_bytes();
        const size_t k = mode == ScaleMode::kRuns ? (tile.first + element) / tile.run : element;
        float x;
        std::memcpy(&x, tile.x + element * sizeof(float), sizeof(float));
        FAIL() << table->name << " " << row.name << " element " << element << " of " << tile.size
               << ": x " << std::hexfloat << x << " scale " << tile.scale[k] << std::defaultfloat
               << " zero point " << (tile.zero_point == nullptr ? 0.0f : tile.zero_point[k])
               << " first " << tile.first << " run " << tile.run << " bounds " << tile.minimum
               << ", " << tile.maximum << " saturate " << tile.saturate << " stream " << tile.stream
               << ": " << int{y.data()[i]} << ", not " << int{expected[i]};
      }
    }
  }

  std::mt19937 random_ = SeededRandom(20240601);
};

// Every length from 0 to 260; misalignments of x and y run through 0 to 63 on different paths.
TEST_P(QuantizeKernels, EveryLengthAndMisalignment) {
  for (size_t size = 0; size <= 260; ++size) {
    for (size_t variant = 0; variant < 6; ++variant) {
      const ScaleMode mode = variant == 0 ? ScaleMode::kPerElement : ScaleMode::kRuns;
      const Bounds bounds = RandomBounds();
      const Scales scales = MakeScales(std::max<size_t>(size + 1, 1), bounds);
      QuantizeTile tile = MakeTile(scales, bounds);
      tile.size = size;
      tile.run = kRunLengths[variant == 1 ? std::size(kRunLengths) - 1
                                          : random_() % std::size(kRunLengths)];
      tile.first = random_() % 2 == 0 ? 0 : random_() % std::min<size_t>(tile.run, 300);
      Bytes x(size * sizeof(float), (size * 5 + variant * 11) % 64);
      for (size_t i = 0; i < size; ++i) {
        const size_t k = mode == ScaleMode::kRuns ? (tile.first + i) / tile.run : i;
        x.Set(i, HardValue(random_, scales.scale[k]));
      }
      tile.x = x.data();
      ASSERT_NO_FATAL_FAILURE(ExpectSameAsScalar(tile, mode, (size * 7 + variant) % 64));
    }
  }
}

// All pairs of run lengths and starts within a run, and all misalignments of x and y, at one length
// that ends within a vector.
TEST_P(QuantizeKernels, EveryRunAndStart) {
  constexpr size_t kSize = 205;
  Bytes x(kSize * sizeof(float), 4);
  for (size_t run : kRunLengths) {
    for (size_t first = 0; first < std::min<size_t>(run, 34); ++first) {
      const Bounds bounds = RandomBounds();
      const Scales scales = MakeScales(kSize + 1, bounds);
      QuantizeTile tile = MakeTile(scales, bounds);
      tile.size = kSize;
      tile.run = run;
      tile.first = first;
      for (size_t i = 0; i < kSize; ++i) {
        x.Set(i, HardValue(random_, scales.scale[(first + i) / run]));
      }
      tile.x = x.data();
      ASSERT_NO_FATAL_FAILURE(ExpectSameAsScalar(tile, ScaleMode::kRuns, first));
    }
  }
}

// Streaming stores start at a boundary, whatever the address.
TEST_P(QuantizeKernels, StreamingAtEveryMisalignment) {
  for (size_t trial = 0; trial < 128; ++trial) {
    const size_t misalignment = trial % 2 == 0 ? 0 : trial / 2;  // short runs stream from 0 only
    const size_t size = 2500 + random_() % 300;
    const Bounds bounds = RandomBounds();
    constexpr size_t kRuns[] = {8, 16, 32, 64, 128, 192, 2048, SIZE_MAX / 2};
    const size_t run = kRuns[random_() % std::size(kRuns)];
    const Scales scales = MakeScales(size / run + 2, bounds);
    QuantizeTile tile = MakeTile(scales, bounds);
    tile.size = size;
    tile.run = run;
    tile.first = random_() % 2 == 0 ? 0 : random_() % std::min<size_t>(run, 600);
    tile.stream = true;
    Bytes x(size * sizeof(float), 63 - misalignment);
    for (size_t i = 0; i < size; ++i) {
      x.Set(i, HardValue(random_, scales.scale[(tile.first + i) / run]));
    }
    tile.x = x.data();
    ASSERT_NO_FATAL_FAILURE(ExpectSameAsScalar(tile, ScaleMode::kRuns, misalignment));
  }
}

// All FLOAT16 and all BFLOAT16 values.
TEST_P(QuantizeKernels, EverySixteenBitFloat) {
  constexpr size_t kSize = 1 << 16;
  std::vector<uint16_t> patterns(kSize);
  for (size_t i = 0; i < kSize; ++i) patterns[i] = static_cast<uint16_t>(i);
  const auto* bytes = reinterpret_cast<const uint8_t*>(patterns.data());
  Bytes x(kSize * sizeof(float), 4);
  for (const bool bfloat : {false, true}) {
    (bfloat ? ScalarKernels().bfloat16_to_float : ScalarKernels().float16_to_float)(bytes, kSize,
                                                                                    x.data());
    for (const float scale : {1.0f, -0.0078125f, InPrecision(0.3f)}) {
      Bounds bounds = RandomBounds();
      Scales scales = MakeScales(1, bounds);
      scales.scale[0] = scale;
      if (!scales.reciprocal.empty()) {
        ScalarKernels().make_reciprocals(&scale, 1, scales.reciprocal.data(),
                                         scales.correction.data());
      }
      QuantizeTile tile = MakeTile(scales, bounds);
      tile.size = kSize;
      tile.x = x.data();
      ASSERT_NO_FATAL_FAILURE(ExpectSameAsScalar(tile, ScaleMode::kRuns, 1));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(List, QuantizeKernels, ::testing::ValuesIn(kRows),
                         [](const auto& test) { return std::string(test.param.name); });

// A table's kernels are in the list, and the list's in the tables.
TEST(KernelList, HasEveryQuantizeKernelOfTheTables) {
  std::vector<const KernelTable*> tables = TablesUnderTest();
  tables.push_back(&ScalarKernels());
  for (const KernelTable* table : tables) {
    size_t kernels = 0;
    for (const auto& division : table->quantize) {
      for (const auto& encoder : division) {
        for (const QuantizeKernel kernel : encoder) kernels += kernel != nullptr;
      }
    }
    EXPECT_EQ(kernels, std::size(kRows) * kScaleModes) << table->name;
  }
}

}  // namespace kernels_quantize_test
}  // namespace quantd
