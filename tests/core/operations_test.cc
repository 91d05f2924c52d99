// The three operations against plain loops, bit for bit: random requests of every type, granularity
// and rule, in pieces of every kind, on every target and several thread counts. A failure prints
// the seed; QUANTD_TEST_SEED repeats it. QUANTD_TEST_SECONDS makes the search longer or, below 4,
// all of it shorter.
#include <gtest/gtest.h>

#include <bit>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "operations_compare.h"
#include "quantd/dynamic_quantize.h"
#include "quantd/targets.h"

namespace quantd {
namespace {

int64_t SomeSize(Random& random) {
  if (random.OneIn(60)) return 700'000;  // several tasks
  return random.OneIn(8) ? 40'000 : 3000;
}

// Runs `operation` repeatedly for some seconds, each round with its own seed.
void Search(const char* name, Operation operation) {
  const char* wanted_seed = std::getenv("QUANTD_TEST_SEED");
  std::random_device device;
  const auto end = std::chrono::steady_clock::now() + SearchTime();
  int rounds = 0;
  int answered = 0;
  do {
    const uint32_t seed = wanted_seed == nullptr
                              ? device()
                              : static_cast<uint32_t>(std::strtoul(wanted_seed, nullptr, 10));
    SCOPED_TRACE(absl::StrCat("QUANTD_TEST_SEED=", seed));
    Random random(seed);
    const Shape shape = RandomShape(random, SomeSize(random));
    const bool dynamic = operation == TryDynamicQuantize;
    answered += operation(random, shape, MakeBlocks(random, shape, dynamic)) ? 1 : 0;
    ++rounds;
  } while (!testing::Test::HasFailure() && wanted_seed == nullptr &&
           std::chrono::steady_clock::now() < end);
  std::printf("%s: %d requests, %d answered\n", name, rounds, answered);
  EXPECT_TRUE(SelectTarget("").ok());
  if (wanted_seed == nullptr) {
    EXPECT_GT(answered * 2, rounds);
  }
}

TEST(Operations, QuantizeIsTheReference) { Search("Quantize", TryQuantize); }
TEST(Operations, DequantizeIsTheReference) { Search("Dequantize", TryDequantize); }
TEST(Operations, DynamicQuantizeIsTheReference) { Search("DynamicQuantize", TryDynamicQuantize); }

// Every way in which tasks share scales and ranges, or do not.
TEST(Operations, TensorsOfSeveralTasks) {
  struct Case {
    Shape shape;
    Shape block;
  };
  const Case cases[] = {
      {{300'007}, {-1}},             // one scale
      {{100'001, 3}, {-1, 1}},       // short rows, all alike
      {{1200, 251}, {-1, 1}},        // the same, and no period fits a window
      {{1200, 260}, {-1, 1}},        // rows that are just long enough
      {{150, 2011}, {-1, 1}},        // more scales than tasks keep for themselves
      {{3, 100'003}, {-1, 1}},       // too many for the memory of most tasks
      {{300'000}, {32}},             // neighbours; no task shares a scale
      {{300, 1001}, {1, 32}},        // with short last blocks
      {{601, 500}, {128, 128}},      // tiles with ragged edges
      {{4000, 77}, {2, 5}},          // small tiles in short rows
      {{16, 64, 300}, {-1, 1, -1}},  // an axis in the middle
      {{2000, 3, 49}, {-1, 1, -1}},  // the same, short
      {{30, 40, 250}, {7, -1, 3}},   // all mixed
      {{300'000, 1}, {1, 1}},        // a scale for each element
  };
  const uint32_t seed = std::random_device()();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  Random random(seed);
  size_t number = 0;
  for (const Case& large : cases) {
    RandomBlocks blocks;
    blocks.granularity.block_shape = large.block;
    for (size_t i = 0; i < large.shape.size(); ++i) {
      const int64_t block = large.block[i] == -1 ? large.shape[i] : large.block[i];
      blocks.scale_shape.push_back(Blocks(large.shape[i], block));
    }
    for (const Operation operation : {TryQuantize, TryDequantize, TryDynamicQuantize}) {
      if (number++ % 4 != 0 && IsShort()) continue;  // each operation gets a quarter of them
      SCOPED_TRACE(absl::StrCat("shape ", ShapeString(large.shape), ", block_shape ",
                                ShapeString(large.block)));
      operation(random, large.shape, blocks);
    }
  }
  EXPECT_TRUE(SelectTarget("").ok());
}

// DynamicQuantize of tensors that are cut into parts, with all types.
TEST(Operations, DynamicQuantizeInParts) {
  static constexpr int64_t kShapes[][2] = {{200'000, 1}, {300, 701}, {2500, 83}, {70, 3000}};
  static constexpr int64_t kBlocks[][2] = {{32, 1}, {1, 7}, {2, 5}, {3, 16}, {1, 1}, {5, 1000}};
  const auto end = std::chrono::steady_clock::now() + SearchTime() / 2;
  do {
    const uint32_t seed = std::random_device()();
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Random random(seed);
    const auto& shape = kShapes[random.Below(std::size(kShapes))];
    const auto& block = kBlocks[random.Below(std::size(kBlocks))];
    RandomBlocks blocks;
    blocks.granularity.block_shape = {block[0], block[1]};
    blocks.scale_shape = {Blocks(shape[0], block[0]), Blocks(shape[1], block[1])};
    TryDynamicQuantize(random, {shape[0], shape[1]}, blocks);
  } while (!testing::Test::HasFailure() && std::chrono::steady_clock::now() < end);
  EXPECT_TRUE(SelectTarget("").ok());
}

// Ranges whose scale has no reciprocal, or no exact one, beside common ones.
TEST(Operations, DynamicQuantizeOfTinyAndHugeRanges) {
  constexpr int64_t kRows = 1500;
  constexpr int64_t kColumns = 64;
  const uint32_t seed = std::random_device()();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  Random random(seed);
  for (const int exponent : {-149, -125, -118, -110, -100, -92, -84, 76, 84, 92, 127}) {
    OwnedTensor x(DataType::kFloat, {kRows, kColumns});
    const int64_t special = random.Below(kRows);
    for (int64_t i = 0; i < x.elements; ++i) {
      const int power = i / kColumns == special ? exponent : 0;
      x.Set(i, std::bit_cast<uint32_t>(std::ldexp(random.Between(-1, 1), power)));
    }
    for (const DataType type : {DataType::kUint8, DataType::kInt8, DataType::kInt4}) {
      DynamicQuantizeParameters parameters;
      parameters.x = x.View();
      parameters.output_type = type;
      parameters.granularity.block_shape = {1, 32};
      SCOPED_TRACE(absl::StrCat("exponent ", exponent));
      IsTheReference(random, parameters, x);
      parameters.granularity.block_shape = {-1, -1};
      IsTheReference(random, parameters, x);
    }
  }
  EXPECT_TRUE(SelectTarget("").ok());
}

// The number of threads that a request gets in a server varies; its result must not.
TEST(Operations, ReportsAreTheSameWithAnyNumberOfThreads) {
  constexpr int64_t kRows = 1500;
  constexpr int64_t kColumns = 701;
  Random random(std::random_device{}());
  OwnedTensor x(DataType::kFloat, {kRows, kColumns});
  for (int64_t i = 0; i < x.elements; ++i) {
    x.Set(i, std::bit_cast<uint32_t>(static_cast<float>(random.Below(1'000'003)) / 7919));
  }
  for (const Shape& block : {Shape{-1, -1}, Shape{1, -1}, Shape{3, 16}}) {
    DynamicQuantizeParameters parameters;
    parameters.x = x.View();
    parameters.report_error = true;
    parameters.granularity.block_shape = block;
    const auto plan = PlanDynamicQuantize(parameters);
    ASSERT_TRUE(plan.ok()) << plan.status();
    std::optional<QuantizationError> first;
    for (const int threads : {1, 2, 3, 5, 16}) {
      const Executor executor(threads);
      DynamicAnswer answer(*plan);
      QuantizationError error;
      ASSERT_TRUE(DynamicQuantize(*plan, x.bytes, executor, Never, answer.Output(), &error).ok());
      if (!first.has_value()) first = error;
      EXPECT_EQ(error.mean_squared_error, first->mean_squared_error) << threads << " threads";
      EXPECT_EQ(error.sqnr_db, first->sqnr_db) << threads << " threads";
    }
  }
}

}  // namespace
}  // namespace quantd
