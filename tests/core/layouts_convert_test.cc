// EncodeWeight and DecodeWeight on every target against the scalar loops, bit for bit; their
// errors, and how they are stopped.
#include <atomic>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels_test_util.h"
#include "layouts_weights.h"
#include "quantd/field_error.h"
#include "quantd/targets.h"

namespace quantd {
namespace {

WeightPlan PlanOf(Layout layout, DataType type, Shape shape) {
  return PlanWeight({.layout = layout, .type = type, .shape = std::move(shape)}).value();
}

// Every target in turn, and the best one again at the end.
template <typename Body>
void OnEveryTarget(const Body& body) {
  for (const std::string& target : SupportedTargets()) {
    ASSERT_TRUE(SelectTarget(target).ok());
    body(target);
  }
  ASSERT_TRUE(SelectTarget("").ok());
}

std::vector<Layout> Layouts(bool encoding_only) {
  std::vector<Layout> layouts;
  for (const LayoutInfo& info : AllLayouts()) {
    if (info.encodes || !encoding_only) layouts.push_back(info.layout);
  }
  return layouts;
}

class LayoutTest : public testing::TestWithParam<Layout> {
 protected:
  Layout layout() const { return GetParam(); }
  // A shape that the layout accepts, of few or many columns.
  Shape RandomShape() {
    constexpr int64_t kRows[] = {1, 1, 2, 3, 7, 8, 9, 16, 127, 128, 130};
    constexpr int64_t kColumns[] = {1, 2, 3, 15, 31, 33, 63, 64, 65, 127, 128, 129, 300};
    const int64_t of = Info(layout()).columns_of;
    const int64_t rows = kRows[random_() % std::size(kRows)];
    int64_t columns = kColumns[random_() % std::size(kColumns)];
    if (of > 1) columns = of * (1 + columns % 9);
    return {rows, columns};
  }

  std::mt19937 random_ = SeededRandom(20261124);
  Executor one_{1};
  Executor three_{3};
};

using ConvertWeight = LayoutTest;

// Larger than a piece: in rows, in columns, and within one row. Every target, number of threads and
// way to read against the scalar loops at once; layouts_golden_test.cc compares with the packages.
TEST_P(ConvertWeight, Pieces) {
  constexpr DataType kOutput = DataType::kBfloat16;
  for (const Shape& shape : {Shape{300, 1280}, Shape{130, 4608}, Shape{1, 307200}}) {
    const WeightPlan plan = PlanOf(layout(), DataType::kFloat, shape);
    std::vector<float> values;
    for (int64_t j = 0; j < plan.elements; ++j) {
      values.push_back(static_cast<float>(random_() % 2001) * 0.001f - 1);
    }
    const ByteVector weight = FromFloats(plan.type, values);
    ASSERT_TRUE(SelectTarget("scalar").ok());
    const Encoded want = Encode(plan, weight, one_);
    ASSERT_TRUE(want.status.ok()) << want.status;
    const ByteVector want_back = *Decode(plan, want.facts, want.parts, kOutput, one_);
    const std::vector<float> back = ToFloats(kOutput, want_back);
    for (size_t i = 0; i < values.size(); ++i) ASSERT_NEAR(back[i], values[i], 0.3f) << i;
    OnEveryTarget([&](const std::string& target) {
      for (const auto& [executor, access] :
           {std::pair{&one_, Access::kMemory}, std::pair{&three_, Access::kPieces}}) {
        const std::string what = absl::StrCat(ShapeString(shape), " on ", target);
        const Encoded encoded = Encode(plan, weight, *executor, access);
        ASSERT_EQ(encoded.status, want.status) << what;
        EXPECT_EQ(encoded.facts.largest, want.facts.largest) << what;
        EXPECT_EQ(encoded.facts.offset, want.facts.offset) << what;
        ASSERT_EQ(encoded.parts.size(), want.parts.size()) << what;
        for (size_t i = 0; i < want.parts.size(); ++i) {
          ASSERT_EQ(Difference(encoded.parts[i], want.parts[i]), "") << "part " << i << what;
        }
        const ByteVector got = *Decode(plan, want.facts, want.parts, kOutput, *executor, access);
        ASSERT_EQ(Difference(got, want_back), "") << what;
      }
    });
    if (HasFatalFailure()) return;
  }
}

// A file may contain any bytes.
using DecodeWeightFrom = LayoutTest;

TEST_P(DecodeWeightFrom, AnyBytes) {
  for (int i = 0; i < 12; ++i) {
    const WeightPlan plan = PlanOf(layout(), kWeightTypes[i % 3], RandomShape());
    WeightFacts facts;
    facts.offset = 0.25f;
    std::vector<ByteVector> parts;
    for (const LayoutPart& part : WeightParts(plan, facts)) {
      ByteVector bytes(part.bytes);
      for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random_());
      parts.push_back(std::move(bytes));
    }
    for (const DataType output : kWeightTypes) {
      ASSERT_TRUE(SelectTarget("scalar").ok());
      const std::vector<float> want = ToFloats(output, *Decode(plan, facts, parts, output, one_));
      OnEveryTarget([&](const std::string& target) {
        const std::vector<float> got =
            ToFloats(output, *Decode(plan, facts, parts, output, i % 2 == 0 ? one_ : three_));
        ASSERT_EQ(got.size(), want.size());
        for (size_t j = 0; j < got.size(); ++j) {
          if (std::isnan(got[j]) && std::isnan(want[j])) continue;
          ASSERT_EQ(std::bit_cast<uint32_t>(got[j]), std::bit_cast<uint32_t>(want[j]))
              << Info(layout()).name << " element " << j << " of " << ShapeString(plan.shape)
              << " on " << target;
        }
      });
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(ConvertWeight, NamesTheFirstThatIsNotFinite) {
  if (layout() == Layout::kGgufF32) return;  // accepts anything
  const WeightPlan plan = PlanOf(layout(), DataType::kFloat, {300, 1280});
  std::vector<float> values(static_cast<size_t>(plan.elements), 0.5f);
  values[100000] = -std::numeric_limits<float>::infinity();
  values[300000] = std::numeric_limits<float>::quiet_NaN();
  values[383999] = 1e30f;  // not in the range of FLOAT16
  const auto error = [&] {
    const absl::Status status =
        Encode(plan, FromFloats(plan.type, values), three_, Access::kPieces).status;
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(ErrorField(status), "weight");
    return std::string(status.message());
  };
  const std::string takes = absl::StrCat(", ", Info(layout()).name, " takes finite values");
  EXPECT_EQ(error(), "-Inf at [78, 160]" + takes);
  values[100000] = 0;
  EXPECT_EQ(error(), "NaN at [234, 480]" + takes);
  std::swap(values[300000], values[383998]);
  EXPECT_EQ(error(), "NaN at [299, 1278]" + takes);
}

INSTANTIATE_TEST_SUITE_P(Layouts, ConvertWeight, testing::ValuesIn(Layouts(true)), LayoutName);
INSTANTIATE_TEST_SUITE_P(Layouts, DecodeWeightFrom, testing::ValuesIn(Layouts(false)), LayoutName);

std::string ErrorOf(Layout layout, DataType type, const Shape& shape,
                    const std::vector<float>& values) {
  const WeightPlan plan = PlanOf(layout, type, shape);
  return std::string(Encode(plan, FromFloats(type, values), Executor(1)).status.message());
}

TEST(ConvertWeightErrors, TooLarge) {
  std::vector<float> values(64, 1.0f);
  values[40] = 65520;
  EXPECT_EQ(ErrorOf(Layout::kGgufF16, DataType::kFloat, {2, 32}, values),
            "65520 at [1, 8] is too large for FLOAT16, which ends at 65504");
  EXPECT_EQ(ErrorOf(Layout::kBnbInt8, DataType::kBfloat16, {2, 32}, values),
            "65536 at [1, 8] is too large for FLOAT16, which ends at 65504");
  EXPECT_EQ(ErrorOf(Layout::kGgufQ4_1, DataType::kFloat, {2, 32}, values), "");
  values[40] = -65519;
  EXPECT_EQ(ErrorOf(Layout::kGgufF16, DataType::kFloat, {2, 32}, values), "");
  EXPECT_EQ(ErrorOf(Layout::kGgufQ4_1, DataType::kFloat, {2, 32}, values), "");
  values[40] = -65520;
  EXPECT_EQ(ErrorOf(Layout::kGgufQ4_1, DataType::kFloat, {2, 32}, values),
            "the scale or the minimum of the block from [1, 0] on is too large for FLOAT16");
  values[40] = 1e7f;
  EXPECT_EQ(ErrorOf(Layout::kGgufQ8_0, DataType::kFloat, {2, 32}, values),
            "the scale or the minimum of the block from [1, 0] on is too large for FLOAT16");
  values[40] = 65504;
  values[41] = -65504;
  EXPECT_EQ(ErrorOf(Layout::kInt4G32Asym, DataType::kFloat16, {2, 32}, values),
            "the scale of the block from [1, 0] on is too large for FLOAT16");
  EXPECT_EQ(ErrorOf(Layout::kInt4G32, DataType::kFloat16, {2, 32}, values), "");
}

TEST(ConvertWeightErrors, LongRowsToo) {
  const WeightPlan plan = PlanOf(Layout::kBnbInt8, DataType::kFloat, {2, 400000});
  std::vector<float> values(800000, 1.0f);
  values[700000] = 70000;
  EXPECT_EQ(Encode(plan, FromFloats(plan.type, values), Executor(3)).status.message(),
            "70000 at [1, 300000] is too large for FLOAT16, which ends at 65504");
  values[600000] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(Encode(plan, FromFloats(plan.type, values), Executor(3)).status.message(),
            "+Inf at [1, 200000], bnb:int8 takes finite values");
}

class FailingSource final : public ByteSource {
 public:
  absl::Status Read(uint64_t, absl::Span<uint8_t>) const override {
    return absl::DataLossError("the disk");
  }
};
class FailingSink final : public ByteSink {
 public:
  absl::Status Write(uint64_t, absl::Span<const uint8_t>) override {
    return absl::ResourceExhaustedError("no space");
  }
};

TEST(ConvertWeightErrors, OfSourcesAndSinks) {
  const Executor executor(2);
  const auto never = [] { return false; };
  for (const LayoutInfo& info : AllLayouts()) {
    if (!info.encodes) continue;
    const WeightPlan plan = PlanOf(info.layout, DataType::kFloat, {8, 128});
    const ByteVector weight(plan.weight_bytes);
    const MemorySource source(absl::MakeConstSpan(weight));
    const FailingSource bad_source;
    FailingSink bad_sink;
    const std::vector<ByteSink*> sinks(WeightParts(plan).size(), &bad_sink);
    EXPECT_EQ(EncodeWeight(plan, {}, source, sinks, executor, never).message(), "no space");
    EXPECT_EQ(EncodeWeight(plan, {}, bad_source, sinks, executor, never).message(), "the disk");
    if (NeedsFacts(info.layout)) {
      EXPECT_EQ(MeasureWeight(plan, bad_source, executor, never).status().message(), "the disk");
    }
    const std::vector<const ByteSource*> sources(sinks.size(), &bad_source);
    EXPECT_EQ(
        DecodeWeight(plan, {}, sources, DataType::kFloat, bad_sink, executor, never).message(),
        "the disk");
  }
}

TEST(ConvertWeightErrors, Interrupted) {
  const WeightPlan plan = PlanOf(Layout::kInt8Tensor, DataType::kFloat, {1000, 1024});
  const ByteVector weight(plan.weight_bytes);
  const MemorySource source(absl::MakeConstSpan(weight));
  ByteVector codes(1024000), scale(4);
  MemorySink codes_sink(absl::MakeSpan(codes)), scale_sink(absl::MakeSpan(scale));
  const std::vector<ByteSink*> sinks = {&codes_sink, &scale_sink};
  std::atomic<int> asked = 0;
  const auto third = [&] { return ++asked >= 3; };
  const Executor executor(2);
  EXPECT_EQ(EncodeWeight(plan, {}, source, sinks, executor, third).code(),
            absl::StatusCode::kCancelled);
  asked = 0;
  EXPECT_EQ(MeasureWeight(plan, source, executor, third).status().code(),
            absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace quantd
