// Kinds of requests, and what is learned of each.
#include "server/operations/costs.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "parameters.h"

namespace quantd::operations {
namespace costs_test {

using std::chrono::microseconds;

constexpr int64_t kElements = 1 << 16;

template <typename Parameters>
CostKind Kind(Parameters parameters, wire::Encoding encoding = wire::Encoding::kRaw) {
  wire::Request request;
  request.parameters = std::move(parameters);
  request.output_encoding = encoding;
  return KindOf(request);
}

TensorView View(DataType type, Shape shape = {kElements}) { return fuzz::ViewOf(type, shape); }

QuantizeParameters Quantize(DataType x, DataType y) {
  return {.x = View(x), .scale = View(DataType::kFloat, {}), .output_type = y};
}
DequantizeParameters Dequantize(DataType x, DataType y) {
  return {.x = View(x), .scale = View(DataType::kFloat, {}), .output_type = y};
}
DynamicQuantizeParameters DynamicQuantize(DataType x, DataType y) {
  return {.x = View(x), .output_type = y};
}
QuantizeEmbeddingsParameters Embeddings(DataType x, DataType y) {
  return {.x = View(x), .output_type = y};
}

double Microseconds(const Costs& costs, const CostKind& kind) {
  return static_cast<double>(costs.Estimate(kind).count()) / 1000;
}

TEST(KindOfTest, EveryKindHasANumberAndAnAssumption) {
  std::set<size_t> kinds;
  size_t count = 0;
  const Costs costs;  // a sanitizer would see a number past its end
  // Assumed at first: 4 GB/s, a quarter of that with a report, and 0.1 GB/s for values.
  const auto add = [&](const CostKind& kind, bool values, bool report) {
    EXPECT_TRUE(kinds.insert(kind.index).second);
    const double each = values ? 10 : report ? 1 : 0.25;
    EXPECT_NEAR(Microseconds(costs, kind), each * static_cast<double>(kind.bytes) / 1000, 0.001);
    ++count;
  };
  for (const DataTypeInfo& x : kDataTypes) {
    for (const DataTypeInfo& y : kDataTypes) {
      for (const wire::Encoding encoding : {wire::Encoding::kRaw, wire::Encoding::kValues}) {
        const bool values = encoding == wire::Encoding::kValues;
        for (const bool many : {false, true}) {
          DequantizeParameters dequantize = Dequantize(x.type, y.type);
          if (many) dequantize.scale = View(DataType::kFloat, {kElements / 2});
          add(Kind(dequantize, encoding), values, false);
          for (const bool report : {false, true}) {
            QuantizeParameters quantize = Quantize(x.type, y.type);
            if (many) quantize.scale = View(DataType::kFloat, {kElements / 2});
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
  EXPECT_EQ(count, kDataTypes.size() * kDataTypes.size() * 2 * 2 * 7);
}

TEST(KindOfTest, BytesAreThoseThatAreReadAndWritten) {
  QuantizeParameters of_scales = Quantize(DataType::kFloat, DataType::kUint8);
  of_scales.x = View(DataType::kFloat, {0, kElements});
  of_scales.scale = View(DataType::kFloat);
  of_scales.zero_point = View(DataType::kUint8);
  QuantizeParameters small = Quantize(DataType::kFloat, DataType::kUint8);
  small.x = View(DataType::kFloat, {1});
  const std::pair<CostKind, uint64_t> rows[] = {
      {Kind(Quantize(DataType::kFloat, DataType::kUint8)), 4 * kElements},
      {Kind(Dequantize(DataType::kUint8, DataType::kFloat)), 5 * kElements},
      {Kind(Dequantize(DataType::kInt2, DataType::kFloat)), 17 * kElements / 4},
      {Kind(DynamicQuantize(DataType::kFloat16, DataType::kInt8)), 2 * kElements},
      {Kind(Embeddings(DataType::kFloat16, DataType::kInt8)), 2 * kElements},
      {Kind(of_scales), 5 * kElements},  // they are read even if x has no elements
      {Kind(small), 4096},               // starting takes some time
  };
  for (const auto& [kind, bytes] : rows) EXPECT_EQ(kind.bytes, bytes);
}

TEST(CostsTest, LearnFollowsTheFastest) {
  struct Row {
    std::vector<int> learned;  // microseconds for 1 MB
    double expected;
  };
  const Row rows[] = {
      {{5000}, 5000},        // the first one says more than an assumption, also on a slow machine
      {{5000, 100}, 100},    // a faster one is believed at once
      {{40, 10'000}, 40.8},  // a slow one may have been disturbed: 2 % at a time
      {{40, 10'000, 10'000}, 40.8 * 1.02},
      {{500, 501}, 501},  // but no more than was seen
      {{0}, 2},
      {{-1000}, 2},  // a clock that stood still or went back
  };
  const size_t index = Kind(Quantize(DataType::kFloat, DataType::kUint8)).index;
  const CostKind other = Kind(Quantize(DataType::kFloat, DataType::kInt8));
  for (const auto& [learned, expected] : rows) {
    Costs costs;
    const double of_other = Microseconds(costs, other);
    for (const int took : learned) costs.Learn({index, 1'000'000}, microseconds(took));
    EXPECT_NEAR(Microseconds(costs, {index, 1'000'000}), expected, expected / 1000);
    EXPECT_NEAR(Microseconds(costs, {index, 1'000'000'000}), expected * 1000, expected);
    EXPECT_EQ(Microseconds(costs, other), of_other);
  }
}

TEST(CostsTest, ThreadsMayLearnAtOnce) {
  Costs costs;
  const CostKind kind = {Kind(Quantize(DataType::kFloat, DataType::kUint8)).index, 1'000'000};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&costs, &kind] {
      for (int i = 0; i < 20'000; ++i) costs.Learn(kind, microseconds(60 + i % 7));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GE(Microseconds(costs, kind), 59.99);
  EXPECT_LE(Microseconds(costs, kind), 66.01);
}

}  // namespace costs_test
}  // namespace quantd::operations
