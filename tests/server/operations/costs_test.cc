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
