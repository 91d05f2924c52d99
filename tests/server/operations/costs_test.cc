// Kinds of requests, and what is learned of each.
#include "server/operations/costs.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "random_parameters.h"

namespace quantd::operations {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr int64_t kElements = 1 << 16;

template <typename Parameters>
CostKind Kind(Parameters parameters, wire::Encoding encoding = wire::Encoding::kRaw) {
  wire::Request request;
  request.parameters = std::move(parameters);
  request.output_encoding = encoding;
  return KindOf(request);
}

QuantizeParameters Quantize(DataType x, DataType y) {
  return {.x = MakeView(x, {kElements}), .scale = MakeView(DataType::kFloat, {}), .output_type = y};
}
DequantizeParameters Dequantize(DataType x, DataType y) {
  return {.x = MakeView(x, {kElements}), .scale = MakeView(DataType::kFloat, {}), .output_type = y};
}
DynamicQuantizeParameters DynamicQuantize(DataType x, DataType y) {
  return {.x = MakeView(x, {kElements}), .output_type = y};
}

QuantizeEmbeddingsParameters Embeddings(DataType x, DataType y) {
  QuantizeEmbeddingsParameters request;
  request.x = MakeView(x, {kElements});
  request.output_type = y;
  return request;
}

// Reading x is not all of the work: every vector and every range take some time.
TEST(CostKindTest, EmbeddingsThatAreNotMostlyX) {
  QuantizeEmbeddingsParameters request = Embeddings(DataType::kFloat16, DataType::kUint8);
  const uint64_t bytes = 2 * kElements;
  request.recipe = EmbeddingRecipe::kRanges;
  EXPECT_EQ(Kind(request).bytes, bytes);
  request.x.shape = {kElements, 1};
  EXPECT_EQ(Kind(request).bytes, 64 * kElements);
  request.recipe = EmbeddingRecipe::kDirection;
  EXPECT_EQ(Kind(request).bytes, 512 * kElements);
  request.x.shape = {kElements / 1024, 1024};
  EXPECT_EQ(Kind(request).bytes, bytes);
  request.recipe = EmbeddingRecipe::kRanges;
  request.x = MakeView(DataType::kFloat, {0, kElements});
  request.ranges = MakeView(DataType::kFloat, {2, kElements});
  EXPECT_EQ(Kind(request).bytes, 8 * kElements);
}

CostKind Plain() { return Kind(Quantize(DataType::kFloat, DataType::kUint8)); }

TEST(CostKindTest, EveryKindHasANumberOfItsOwn) {
  std::set<size_t> kinds;
  size_t count = 0;
  const Costs costs;  // a sanitizer would see a number past its end
  // Assumed at first: 4 GB/s, a quarter of that with a report, and 0.1 GB/s for values.
  const auto add = [&](const CostKind& kind, bool values, bool report) {
    EXPECT_TRUE(kinds.insert(kind.index).second);
    const double each = values ? 10 : report ? 1 : 0.25;
    EXPECT_NEAR(static_cast<double>(costs.Estimate(kind).count()),
                each * static_cast<double>(kind.bytes), 1);
    ++count;
  };
  for (const DataTypeInfo& x : kDataTypes) {
    for (const DataTypeInfo& y : kDataTypes) {
      for (const wire::Encoding encoding : {wire::Encoding::kRaw, wire::Encoding::kValues}) {
        const bool values = encoding == wire::Encoding::kValues;
        for (const bool many : {false, true}) {
          DequantizeParameters dequantize = Dequantize(x.type, y.type);
          if (many) dequantize.scale = MakeView(DataType::kFloat, {kElements / 2});
          add(Kind(dequantize, encoding), values, false);
          for (const bool report : {false, true}) {
            QuantizeParameters quantize = Quantize(x.type, y.type);
            if (many) quantize.scale = MakeView(DataType::kFloat, {kElements / 2});
            quantize.report_error = report;
            add(Kind(quantize, encoding), values, report);
            DynamicQuantizeParameters dynamic = DynamicQuantize(x.type, y.type);
            if (many) dynamic.granularity.block_size = 32;
            dynamic.report_error = report;
            add(Kind(dynamic, encoding), values, report);
            QuantizeEmbeddingsParameters embeddings = Embeddings(x.type, y.type);
            embeddings.normalize = many;
            embeddings.report_error = report;
            add(Kind(embeddings, encoding), values, report);
          }
        }
      }
    }
  }
  EXPECT_EQ(kinds.size(), count);
  EXPECT_EQ(count, kDataTypes.size() * kDataTypes.size() * 2 * 2 * 7);
}

TEST(CostKindTest, LengthsOfEmbeddingsAndBitsAreKinds) {
  const auto kind = [](EmbeddingRecipe recipe, bool normalize, DataType y) {
    QuantizeEmbeddingsParameters request = Embeddings(DataType::kFloat, y);
    request.recipe = recipe;
    request.normalize = normalize;
    return Kind(request).index;
  };
  const size_t plain = kind(EmbeddingRecipe::kUnit, false, DataType::kInt8);
  const size_t lengths = kind(EmbeddingRecipe::kUnit, true, DataType::kInt8);
  EXPECT_NE(plain, lengths);
  EXPECT_EQ(kind(EmbeddingRecipe::kRanges, false, DataType::kInt8), plain);
  EXPECT_EQ(kind(EmbeddingRecipe::kDirection, false, DataType::kInt8), lengths);
  EXPECT_EQ(kind(EmbeddingRecipe::kDirection, true, DataType::kInt8), lengths);
  const size_t bits = kind(EmbeddingRecipe::kBits, false, DataType::kInt8);
  EXPECT_EQ(kind(EmbeddingRecipe::kBits, false, DataType::kUint8), bits);
  for (const DataType y : {DataType::kUnspecified, DataType::kInt8, DataType::kUint8}) {
    EXPECT_NE(kind(EmbeddingRecipe::kUnit, false, y), bits);
  }
}

// A property that does not change the speed makes no separate kind, or nothing would be learned.
TEST(CostKindTest, TheSizeIsNoKind) {
  QuantizeParameters small = Quantize(DataType::kFloat, DataType::kUint8);
  small.x = MakeView(DataType::kFloat, {100, 100});
  EXPECT_EQ(Kind(small).index, Plain().index);
  EXPECT_EQ(Kind(small).bytes, 40'000U);
}

TEST(CostKindTest, TheZeroPointSaysTheType) {
  QuantizeParameters request = Quantize(DataType::kFloat, DataType::kUnspecified);
  request.zero_point = MakeView(DataType::kInt8, {});
  EXPECT_EQ(Kind(request).index, Kind(Quantize(DataType::kFloat, DataType::kInt8)).index);
}

TEST(CostKindTest, ManyScalesAreMoreThanOneFor64Elements) {
  const size_t plain = Plain().index;
  QuantizeParameters request = Quantize(DataType::kFloat, DataType::kUint8);
  request.scale = MakeView(DataType::kFloat, {kElements / 64});
  EXPECT_EQ(Kind(request).index, plain);
  request.scale = MakeView(DataType::kFloat, {kElements / 63});
  EXPECT_NE(Kind(request).index, plain);

  const size_t dynamic = Kind(DynamicQuantize(DataType::kFloat, DataType::kInt8)).index;
  DynamicQuantizeParameters blocked = DynamicQuantize(DataType::kFloat, DataType::kInt8);
  // Elements of a block in the last dimension are neighbours; 0 and -1 mean the whole dimension.
  for (const int64_t block : {-1, 0, 1, 63, 64, 65}) {
    blocked.granularity = {.block_size = block};
    const bool many = block == 1 || block == 63;
    EXPECT_EQ(Kind(blocked).index == dynamic, !many) << block;
    blocked.granularity = {.block_shape = {64, block}};
    EXPECT_EQ(Kind(blocked).index == dynamic, !many) << block;
    blocked.granularity = {.block_shape = {block, 64}};
    EXPECT_EQ(Kind(blocked).index, dynamic) << block;
  }
}

// For a Dequantize, x counts as FLOAT.
TEST(CostKindTest, ManyScalesOfADequantizeAreCountedAgainstWhatItWrites) {
  for (const DataType type : {DataType::kUint8, DataType::kInt2, DataType::kInt16}) {
    DequantizeParameters request = Dequantize(type, DataType::kFloat);
    const size_t plain = Kind(request).index;
    request.scale = MakeView(DataType::kFloat, {kElements / 64});
    EXPECT_EQ(Kind(request).index, plain);
    request.scale = MakeView(DataType::kFloat, {kElements / 64 + 1});
    EXPECT_NE(Kind(request).index, plain);
  }
}

// They are packed into bytes before. Otherwise, what is learned of them would apply to requests
// whose response has values, which take forty times as long.
TEST(CostKindTest, ValuesOnTheirWayInAreNoKind) {
  wire::Request request;
  request.parameters = Quantize(DataType::kFloat, DataType::kUint8);
  request.packed.emplace_back(4);
  EXPECT_EQ(KindOf(request).index, Plain().index);
  EXPECT_NE(KindOf(request).index,
            Kind(Quantize(DataType::kFloat, DataType::kUint8), wire::Encoding::kValues).index);
}

TEST(CostKindTest, BytesAreThoseThatAreReadAndWritten) {
  EXPECT_EQ(Plain().bytes, 4U * kElements);
  EXPECT_EQ(Kind(Dequantize(DataType::kUint8, DataType::kFloat)).bytes, 5U * kElements);
  EXPECT_EQ(Kind(Dequantize(DataType::kInt2, DataType::kFloat)).bytes, 17U * kElements / 4);
  EXPECT_EQ(Kind(DynamicQuantize(DataType::kFloat16, DataType::kInt8)).bytes, 2U * kElements);
  // Scales are read even if x has no elements.
  QuantizeParameters scales = Quantize(DataType::kFloat, DataType::kUint8);
  scales.x = MakeView(DataType::kFloat, {0, kElements});
  scales.scale = MakeView(DataType::kFloat, {kElements});
  scales.zero_point = MakeView(DataType::kUint8, {kElements});
  EXPECT_EQ(Kind(scales).bytes, 5U * kElements);
  // The least for any request, because starting takes some time.
  QuantizeParameters request = Quantize(DataType::kFloat, DataType::kUint8);
  request.x = MakeView(DataType::kFloat, {1});
  EXPECT_EQ(Kind(request).bytes, 4096U);
  EXPECT_EQ(Kind(Embeddings(DataType::kFloat16, DataType::kInt8)).bytes, 2U * kElements);
}

TEST(CostsTest, WhatIsUnknownIsGuessedByWhatIsAsked) {
  const Costs costs;
  QuantizeParameters request = Quantize(DataType::kFloat, DataType::kUint8);
  const nanoseconds plain = costs.Estimate(Kind(request));
  const nanoseconds values = costs.Estimate(Kind(request, wire::Encoding::kValues));
  request.report_error = true;
  const nanoseconds report = costs.Estimate(Kind(request));
  EXPECT_NEAR(static_cast<double>(plain.count()), kElements, 1);  // 4 GB/s
  EXPECT_GT(report, plain);
  EXPECT_GT(values, report);
}

TEST(CostsTest, TheEstimateScalesWithTheBytes) {
  Costs costs;
  CostKind kind = Plain();
  kind.bytes = 1'000'000;
  costs.Learn(kind, microseconds(100));
  EXPECT_NEAR(static_cast<double>(costs.Estimate(kind).count()), 100'000, 10);
  kind.bytes *= 1000;
  EXPECT_NEAR(static_cast<double>(costs.Estimate(kind).count()), 100'000'000, 10'000);
  kind.bytes = 4096;
  EXPECT_NEAR(static_cast<double>(costs.Estimate(kind).count()), 410, 1);
}

TEST(CostsTest, LearnsTheFastestAtOnce) {
  Costs costs;
  const CostKind kind = {Plain().index, 1'000'000};
  const CostKind other = Kind(Quantize(DataType::kFloat, DataType::kInt8));
  const nanoseconds of_other = costs.Estimate(other);
  costs.Learn(kind, microseconds(50));
  costs.Learn(kind, microseconds(40));
  EXPECT_NEAR(static_cast<double>(costs.Estimate(kind).count()), 40'000, 10);
  EXPECT_EQ(costs.Estimate(other), of_other);
}

// A bad assumption, on a slow machine, must not take hundreds of requests to be corrected.
TEST(CostsTest, TheFirstOneSaysMoreThanAnAssumption) {
  Costs costs;
  const CostKind kind = {Plain().index, 4096};
  costs.Learn(kind, milliseconds(5));
  EXPECT_NEAR(static_cast<double>(costs.Estimate(kind).count()), 5'000'000, 10);
  costs.Learn(kind, milliseconds(1));
  EXPECT_NEAR(static_cast<double>(costs.Estimate(kind).count()), 1'000'000, 10);
}

// A single slow request may have been disturbed, so it counts little; many slow ones are believed.
TEST(CostsTest, RecoversByTwoPercentAtATime) {
  Costs costs;
  const CostKind kind = {Plain().index, 1'000'000};
  costs.Learn(kind, microseconds(40));
  double expected = 40'000;
  for (int i = 0; i < 100; ++i) {
    costs.Learn(kind, milliseconds(10));
    expected *= 1.02;
    ASSERT_NEAR(static_cast<double>(costs.Estimate(kind).count()), expected, expected / 1000);
  }
  // The estimate does not exceed what was seen.
  for (int i = 0; i < 1000; ++i) costs.Learn(kind, microseconds(500));
  EXPECT_NEAR(static_cast<double>(costs.Estimate(kind).count()), 500'000, 100);
}

// A clock that stood still or went back must not make a kind cost nothing for ever.
TEST(CostsTest, NothingIsFree) {
  Costs costs;
  const CostKind kind = {Plain().index, 1'000'000};
  for (const nanoseconds took : {nanoseconds(0), nanoseconds(-1'000'000)}) {
    costs.Learn(kind, took);
    EXPECT_NEAR(static_cast<double>(costs.Estimate(kind).count()), 2000, 1);
  }
  for (int i = 0; i < 1000; ++i) costs.Learn(kind, microseconds(100));
  EXPECT_NEAR(static_cast<double>(costs.Estimate(kind).count()), 100'000, 100);
}

TEST(CostsTest, ThreadsMayLearnAtOnce) {
  Costs costs;
  const CostKind kind = {Plain().index, 1'000'000};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&costs, &kind] {
      for (int i = 0; i < 20'000; ++i) costs.Learn(kind, microseconds(60 + i % 7));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GE(costs.Estimate(kind), nanoseconds(59'990));
  EXPECT_LE(costs.Estimate(kind), nanoseconds(66'010));
}

}  // namespace
}  // namespace quantd::operations
