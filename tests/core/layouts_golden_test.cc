// Weights in every layout against what the packages made of the same weights, on every target:
// tests/golden/layouts.txt.
//
// The weights are those of tests/checkpoints/hard.py, made here a second time; golden.py wrote the
// checksums.
#include <array>
#include <bit>
#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "layouts_weights.h"
#include "quantd/field_error.h"
#include "quantd/targets.h"

namespace quantd {
namespace {

std::string Crc32(const ByteVector& bytes) {
  static const std::array<uint32_t, 256> kTable = [] {
    std::array<uint32_t, 256> table = {};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ ((value & 1) != 0 ? 0xEDB88320u : 0);
      table[i] = value;
    }
    return table;
  }();
  uint32_t crc = ~0u;
  for (const uint8_t byte : bytes) crc = kTable[(crc ^ byte) & 0xFF] ^ crc >> 8;
  return absl::StrFormat("%08x", ~crc);
}

// ---- hard.py ------------------------------------------------------------------------------------

class SplitMix {
 public:
  explicit SplitMix(uint64_t seed) : state_(seed) {}
  uint64_t Next() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
  }

 private:
  uint64_t state_;
};

constexpr DataType kTypes[] = {DataType::kFloat, DataType::kFloat16, DataType::kBfloat16};
constexpr std::string_view kDtypes[] = {"F32", "F16", "BF16"};

Shape ShapeOf(uint64_t index, int64_t columns_of) {
  constexpr int64_t kRows[] = {1, 3, 9, 64, 130, 2, 17, 128};
  constexpr int64_t kColumns[] = {1, 33, 128, 64, 200, 5, 129, 300};
  constexpr int64_t kGroups[] = {1, 2, 3, 5};
  return {kRows[index % 8],
          columns_of == 1 ? kColumns[index * 3 % 8] : columns_of * kGroups[index % 4]};
}

// The bits of one element of weight `index`.
uint32_t BitsOf(DataType type, uint64_t index, uint64_t r, bool huge) {
  const int mantissa = type == DataType::kFloat ? 23 : type == DataType::kFloat16 ? 10 : 7;
  const int exponent = type == DataType::kFloat16 ? 5 : 8;
  const auto field = [r](int shift, uint64_t below) {
    return static_cast<int64_t>((r >> shift) % below);
  };
  const int64_t one = int64_t{1} << mantissa;
  const int64_t center = (1 << (exponent - 1)) - 1 - 6;
  auto sign = static_cast<int64_t>(r >> 63);
  int64_t m = static_cast<int64_t>(r) & (one - 1);
  int64_t e = center + field(40, 4);
  switch (index % 12) {
    case 1:
      e = center + field(40, 6);
      m = m >> (mantissa - 2) << (mantissa - 2);
      break;
    case 2:
      e = m = 0;
      break;
    case 3:
      e = 0;
      break;
    case 4:
      e = field(40, (uint64_t{1} << exponent) - 1);
      break;
    case 5:
      if (huge) {
        e = (int64_t{1} << exponent) - 2;
        m = one - 1;
      }
      break;
    case 6:
      if (field(50, 3) != 0) e = m = 0;
      break;
    case 7:
      sign = 0;
      break;
    case 8:
      sign = 1;
      break;
    case 9:
      m = one - 1 - field(50, 4);
      break;
    case 10:
      e = center + 4 - field(40, 12) / (1 + field(50, 3));
      break;
    case 11: {
      const auto whole = static_cast<uint64_t>(field(30, 9));
      const int top = whole == 0 ? 0 : std::bit_width(whole) - 1;
      e = whole == 0 ? 0 : center + 6 + top;
      m = whole == 0 ? 0 : static_cast<int64_t>(whole << mantissa >> top) - one;
      break;
    }
    default:
      break;
  }
  return static_cast<uint32_t>(sign << (exponent + mantissa) | e << mantissa | m);
}

ByteVector WeightOf(size_t type, uint64_t index, int64_t elements) {
  SplitMix random(index * 3 + type);
  ByteVector bytes;
  for (int64_t i = 0; i < elements; ++i) {
    const uint32_t bits = BitsOf(kTypes[type], index, random.Next(), i == elements * 5 / 7);
    for (int byte = 0; byte < Info(kTypes[type]).bits / 8; ++byte) {
      bytes.push_back(static_cast<uint8_t>(bits >> 8 * byte));
    }
  }
  return bytes;
}

// Whether a block of one of GGML's K types has a FLOAT16 at this offset.
bool IsHalf(Layout layout, size_t offset) {
  switch (layout) {
    case Layout::kGgufQ2K:
      return offset == 80 || offset == 82;
    case Layout::kGgufQ3K:
      return offset == 108;
    case Layout::kGgufQ6K:
      return offset == 208;
    default:
      return offset == 0 || offset == 2;
  }
}

// ---- The test -----------------------------------------------------------------------------------

// What golden.py wrote of the weights of a type, by index.
struct Row {
  size_t type = 0;  // 3: none, of a K type
  std::vector<std::string> words;
};

// The rows of each layout.
const std::map<std::string, std::vector<Row>>& Golden() {
  static const auto kGolden = [] {
    std::map<std::string, std::vector<Row>> golden;
    std::ifstream file(QUANTD_GOLDEN_LAYOUTS);
    for (std::string text; std::getline(file, text);) {
      std::istringstream words(text);
      std::string layout, dtype;
      Row row;
      words >> layout >> dtype;
      while (row.type < 3 && kDtypes[row.type] != dtype) ++row.type;
      for (std::string word; words >> word;) row.words.push_back(word);
      golden[layout].push_back(row);
    }
    return golden;
  }();
  return kGolden;
}

// Makes every NaN the same: their bits are not specified.
ByteVector WithOneNan(DataType type, const ByteVector& bytes) {
  std::vector<float> values = ToFloats(type, bytes);
  for (float& value : values) {
    if (std::isnan(value)) value = std::numeric_limits<float>::quiet_NaN();
  }
  return FromFloats(type, values);
}

class LayoutsOfPackages : public testing::TestWithParam<Layout> {
 protected:
  const LayoutInfo& info() const { return Info(GetParam()); }

  // Adds the checksums of the decodings to the three types, or `-` for those that no package has.
  void AddDecodings(const WeightPlan& plan, const WeightFacts& facts,
                    const std::vector<ByteVector>& parts, bool readable, const Executor& executor,
                    Access access, std::vector<std::string>& sums) {
    for (const DataType output : kTypes) {
      const ByteVector back = *Decode(plan, facts, parts, output, executor, access);
      sums.push_back(readable ? Crc32(WithOneNan(output, back)) : "-");
    }
  }

  static std::string OfAll(const std::vector<std::string>& sums) {
    const std::string text = absl::StrJoin(sums, " ");
    return Crc32(ByteVector(text.begin(), text.end()));
  }

  // `wanted`: the word of the golden file.
  std::string WordOf(size_t type, uint64_t index, const std::string& wanted,
                     const Executor& executor, Access access) {
    const Shape shape = ShapeOf(index, info().columns_of);
    const WeightPlan plan =
        PlanWeight({.layout = info().layout, .type = kTypes[type], .shape = shape}).value();
    const ByteVector weight = WeightOf(type, index, plan.elements);
    Encoded encoded = Encode(plan, weight, executor, access);
    if (!encoded.status.ok()) {
      EXPECT_EQ(ErrorField(encoded.status), "weight") << encoded.status;
      return "refused";
    }
    std::string offset_bits;
    if (const size_t plus = wanted.find('+'); plus != std::string::npos) {
      // The package sums in another order.
      offset_bits = wanted.substr(0, plus + 1);
      const auto bits = static_cast<uint32_t>(std::stoul(offset_bits, nullptr, 16));
      const auto offset = std::bit_cast<float>(bits);
      EXPECT_NEAR(encoded.facts.offset, offset, std::fabs(offset) * 1e-6f);
      encoded = EncodeWith(plan, {.offset = offset}, weight, executor, access);
    }
    std::vector<std::string> sums;
    const std::vector<LayoutPart> parts = WeightParts(plan, encoded.facts);
    for (size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].suffix.find("quant_state") == std::string::npos) {
        sums.push_back(Crc32(encoded.parts[i]));
      }
    }
    const bool readable = wanted.back() != '*';
    AddDecodings(plan, encoded.facts, encoded.parts, readable, executor, access, sums);
    return offset_bits + OfAll(sums) + (readable ? "" : "*");
  }

  // A K type: there are no weights for it.
  std::string DecodedWordOf(uint64_t index, const Executor& executor, Access access) {
    const WeightPlan plan =
        PlanWeight({.layout = info().layout, .type = DataType::kFloat, .shape = {5, 256}}).value();
    SplitMix random(1000 + index);
    ByteVector stored;
    const auto block_bytes = static_cast<size_t>(info().block_bytes);
    for (size_t i = 0; i < 5 * block_bytes; ++i) {
      auto byte = static_cast<uint8_t>(random.Next());
      if (i % block_bytes != 0 && IsHalf(info().layout, i % block_bytes - 1)) byte &= 0xBF;
      stored.push_back(byte);
    }
    std::vector<std::string> sums;
    AddDecodings(plan, {}, {stored}, true, executor, access, sums);
    return OfAll(sums);
  }
};

// With one thread in memory, and with several that read and write pieces.
TEST_P(LayoutsOfPackages, AreThoseBits) {
  const auto found = Golden().find(std::string(info().name));
  ASSERT_NE(found, Golden().end());
  ASSERT_EQ(found->second.size(), info().encodes ? 3u : 1u);
  const Executor one(1), three(3);
  for (const std::string& target : SupportedTargets()) {
    ASSERT_TRUE(SelectTarget(target).ok());
    for (const auto& [executor, access] :
         {std::pair{&one, Access::kMemory}, std::pair{&three, Access::kPieces}}) {
      for (const Row& row : found->second) {
        for (uint64_t index = 0; index < row.words.size(); ++index) {
          const std::string& wanted = row.words[index];
          if (wanted == "-") continue;
          EXPECT_EQ(row.type < 3 ? WordOf(row.type, index, wanted, *executor, access)
                                 : DecodedWordOf(index, *executor, access),
                    wanted)
              << info().name << " weight " << index << " of " << kDtypes[row.type % 3] << " on "
              << target;
        }
      }
    }
  }
  ASSERT_TRUE(SelectTarget("").ok());
}

INSTANTIATE_TEST_SUITE_P(Layouts, LayoutsOfPackages, testing::ValuesIn([] {
                           std::vector<Layout> layouts;
                           for (const LayoutInfo& row : AllLayouts()) {
                             if (row.layout != Layout::kGgufF32) layouts.push_back(row.layout);
                           }
                           return layouts;
                         }()),
                         LayoutName);

}  // namespace
}  // namespace quantd
