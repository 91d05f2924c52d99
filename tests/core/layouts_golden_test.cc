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
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "layouts_weights.h"
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

struct Line {
  size_t type = 0;  // "-": none
  uint64_t index = 0;
  std::vector<std::string> words;
};

// The lines of each layout.
const std::map<std::string, std::vector<Line>>& Golden() {
  static const auto kGolden = [] {
    std::map<std::string, std::vector<Line>> golden;
    std::ifstream file(QUANTD_GOLDEN_LAYOUTS);
    for (std::string text; std::getline(file, text);) {
      std::istringstream words(text);
      std::string layout, dtype;
      Line line;
      words >> layout >> dtype >> line.index;
      while (line.type < 3 && kDtypes[line.type] != dtype) ++line.type;
      for (std::string word; words >> word;) line.words.push_back(word);
      golden[layout].push_back(line);
    }
    return golden;
  }();
  return kGolden;
}

std::string Joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

// Makes every NaN the same: their bits are not specified.
ByteVector WithOneNan(DataType type, const ByteVector& bytes) {
  std::vector<float> values = ToFloats(type, bytes);
  for (float& value : values) {
    if (std::isnan(value)) value = std::numeric_limits<float>::quiet_NaN();
  }
  return FromFloats(type, values);
}

// The words about the decodings to the three types; "-" if the package has none.
void AddDecodings(const WeightPlan& plan, const WeightFacts& facts,
                  const std::vector<ByteVector>& parts, const std::vector<std::string>& wanted,
                  const Executor& executor, std::vector<std::string>& words) {
  for (const DataType output : kTypes) {
    const bool none = words.size() < wanted.size() && wanted[words.size()] == "-";
    const ByteVector back = *Decode(plan, facts, parts, output, executor);
    words.push_back(none ? "-" : Crc32(WithOneNan(output, back)));
  }
}

class LayoutsOfPackages : public testing::TestWithParam<Layout> {
 protected:
  const LayoutInfo& info() const { return Info(GetParam()); }

  std::vector<std::string> WordsOf(const Line& line) {
    const Shape shape = ShapeOf(line.index, info().columns_of);
    const WeightPlan plan =
        PlanWeight({.layout = info().layout, .type = kTypes[line.type], .shape = shape}).value();
    const ByteVector weight = WeightOf(line.type, line.index, plan.elements);
    Encoded encoded = Encode(plan, weight, executor_);
    if (!encoded.status.ok()) {
      EXPECT_THAT(encoded.status.message(), testing::HasSubstr("too large"));
      return {"refused"};
    }
    std::vector<std::string> words;
    const bool nested =
        info().layout == Layout::kBnbNf4Double || info().layout == Layout::kBnbFp4Double;
    if (nested) {
      // The package sums in another order.
      const auto bits = static_cast<uint32_t>(std::stoul(line.words[0], nullptr, 16));
      const auto offset = std::bit_cast<float>(bits);
      EXPECT_NEAR(encoded.facts.offset, offset, std::fabs(offset) * 1e-6f);
      words.push_back(line.words[0]);
      encoded = EncodeWith(plan, {.offset = offset}, weight, executor_);
    }
    const std::vector<LayoutPart> parts = WeightParts(plan, encoded.facts);
    for (size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].suffix.find("quant_state") == std::string::npos) {
        words.push_back(Crc32(encoded.parts[i]));
      }
    }
    AddDecodings(plan, encoded.facts, encoded.parts, line.words, executor_, words);
    return words;
  }

  // A K type: there are no weights for it.
  std::vector<std::string> DecodedWordsOf(const Line& line) {
    const WeightPlan plan =
        PlanWeight({.layout = info().layout, .type = DataType::kFloat, .shape = {5, 256}}).value();
    SplitMix random(1000 + line.index);
    ByteVector stored;
    const auto block_bytes = static_cast<size_t>(info().block_bytes);
    for (size_t i = 0; i < 5 * block_bytes; ++i) {
      auto byte = static_cast<uint8_t>(random.Next());
      if (i % block_bytes != 0 && IsHalf(info().layout, i % block_bytes - 1)) byte &= 0xBF;
      stored.push_back(byte);
    }
    std::vector<std::string> words;
    AddDecodings(plan, {}, {stored}, line.words, executor_, words);
    return words;
  }

  Executor executor_{2};
};

TEST_P(LayoutsOfPackages, AreThoseBits) {
  const auto found = Golden().find(std::string(info().name));
  ASSERT_NE(found, Golden().end());
  ASSERT_GE(found->second.size(), info().encodes ? 60u : 4u);
  for (const std::string& target : SupportedTargets()) {
    ASSERT_TRUE(SelectTarget(target).ok());
    for (const Line& line : found->second) {
      EXPECT_EQ(Joined(line.type < 3 ? WordsOf(line) : DecodedWordsOf(line)), Joined(line.words))
          << info().name << " weight " << line.index << " of " << kDtypes[line.type % 3] << " on "
          << target;
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
