// The three operations against plain loops, bit for bit: random requests of every type, granularity
// and rule, in pieces of every kind, on every target and several thread counts. A failure prints
// the seed; QUANTD_TEST_SEED repeats it, QUANTD_TEST_SECONDS makes the search longer
// or, below 4, all of it shorter.
#include <gtest/gtest.h>

#include <bit>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "operations_random.h"
#include "oracle.h"
#include "quantd/dequantize.h"
#include "quantd/dynamic_quantize.h"
#include "quantd/field_error.h"
#include "quantd/quantize.h"
#include "quantd/targets.h"

namespace quantd {
namespace {

bool Never() { return false; }

std::string Describe(const char* operation, const PlanBase& plan) {
  return absl::StrCat(operation, " ", std::string(Name(plan.input_type)), " to ",
                      std::string(Name(plan.output_type)), ", shape ", ShapeString(plan.shape),
                      ", blocks ", ShapeString(plan.block_shape), ", target ",
                      std::string(CurrentTarget()));
}

// Where two answers first differ, byte by byte.
std::string Difference(absl::Span<const uint8_t> got, absl::Span<const uint8_t> wanted) {
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (got[i] != wanted[i]) {
      return absl::StrCat("byte ", i, " of ", wanted.size(), " is ", got[i], ", not ", wanted[i]);
    }
  }
  return "";
}

void ExpectSameError(const QuantizationError& got, const QuantizationError& wanted) {
  const auto near = [](double a, double b) {
    return a == b || std::fabs(a - b) <= 1e-6 * std::fabs(b) || (std::isnan(a) && std::isnan(b));
  };
  // A logarithm: 1e-6 of the ratio is an absolute 4e-6 dB.
  EXPECT_TRUE(near(got.sqnr_db, wanted.sqnr_db) || std::fabs(got.sqnr_db - wanted.sqnr_db) < 4e-6)
      << got.sqnr_db << " " << wanted.sqnr_db;
  EXPECT_TRUE(near(got.mean_squared_error, wanted.mean_squared_error))
      << got.mean_squared_error << " " << wanted.mean_squared_error;
  EXPECT_TRUE(near(got.max_absolute_error, wanted.max_absolute_error))
      << got.max_absolute_error << " " << wanted.max_absolute_error;
  EXPECT_EQ(got.saturated_elements, wanted.saturated_elements);
  EXPECT_EQ(got.non_finite_elements, wanted.non_finite_elements);
}

// The pools are made once: a process has them for long.
const Executor& SomeExecutor(Random& random) {
  static const auto* executors = new std::vector<std::unique_ptr<Executor>>([] {
    std::vector<std::unique_ptr<Executor>> made;
    for (int threads : {1, 2, 3, 5}) made.push_back(std::make_unique<Executor>(threads));
    return made;
  }());
  return *(*executors)[random.Below(static_cast<int64_t>(executors->size()))];
}

int64_t SomeSize(Random& random) {
  if (random.OneIn(60)) return 700'000;  // several tasks
  return random.OneIn(8) ? 40'000 : 3000;
}

DataType MaybeType(Random& random) {
  return random.OneIn(2) ? DataType::kUnspecified : random.Of(kFloatTypes);
}

// Returns whether the request made a plan.
bool TryQuantize(Random& random, const Shape& shape, const RandomBlocks& blocks) {
  static constexpr DataType kInputs[] = {DataType::kFloat, DataType::kFloat, DataType::kFloat16,
                                         DataType::kBfloat16, DataType::kInt32};
  static constexpr DataType kScales[] = {DataType::kFloat,   DataType::kFloat,
                                         DataType::kFloat16, DataType::kBfloat16,
                                         DataType::kInt32,   DataType::kFloat8E8M0};
  const DataType output = random.Of(kQuantizedTypes);
  const OwnedTensor scale = RandomScale(random, random.Of(kScales), blocks.scale_shape, false);
  const OwnedTensor x =
      RandomInput(random, random.Of(kInputs), shape, &scale, output, random.OneIn(2));
  QuantizeParameters parameters;
  parameters.x = x.View();
  parameters.scale = scale.View();
  parameters.granularity = blocks.granularity;
  parameters.output_type = output;
  parameters.saturate = !random.OneIn(2);
  parameters.precision = random.OneIn(2) ? DataType::kUnspecified : MaybeType(random);
  parameters.report_error = random.OneIn(4);
  OwnedTensor zero_point;
  if (!random.OneIn(3)) {
    DataType type = output;
    const bool integer = Info(output).kind == DataTypeKind::kInteger;
    if (integer && random.OneIn(3)) {
      parameters.zero_point_order = ZeroPointOrder::kBeforeRounding;
      parameters.precision = DataType::kUnspecified;
      if (random.OneIn(2)) type = DataType::kInt32;
    }
    zero_point = RandomCodes(random, type, blocks.scale_shape);
    if (Info(output).kind == DataTypeKind::kFloat8) {
      std::fill(zero_point.bytes.begin(), zero_point.bytes.end(), uint8_t{0});
    }
    parameters.zero_point = zero_point.View();
  }
  absl::StatusOr<QuantizePlan> plan = PlanQuantize(parameters);
  if (!plan.ok()) {
    // The only thing that may be wrong with these requests.
    EXPECT_EQ(ErrorField(plan.status()), "scale") << plan.status();
    return false;
  }
  std::vector<uint8_t> wanted(plan->output_bytes);
  QuantizationError wanted_error;
  oracle::Quantize(*plan, x.bytes, absl::MakeSpan(wanted), &wanted_error);
  for (const std::string& target : SupportedTargets()) {
    EXPECT_TRUE(SelectTarget(target).ok());
    const PiecedBytes pieces(random, x.bytes);
    std::vector<uint8_t> y(plan->output_bytes, 0xA5);
    QuantizationError error;
    const absl::Status status =
        Quantize(*plan, pieces.chunks, SomeExecutor(random), Never, absl::MakeSpan(y), &error);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(Difference(y, wanted), "")
        << Describe("Quantize", *plan) << ", scale " << Name(scale.type) << ", quotient "
        << static_cast<int>(plan->quotient);
    if (parameters.report_error) {
      SCOPED_TRACE(Describe("Quantize", *plan));
      ExpectSameError(error, wanted_error);
    }
  }
  return true;
}

// Bytes of floats where any NaN is as good as another.
void MakeNansAlike(DataType type, int64_t elements, std::vector<uint8_t>& bytes) {
  for (int64_t i = 0; i < elements; ++i) {
    if (std::isnan(DecodeFloat(type, LoadCode(type, bytes.data(), i)))) {
      StoreCode(type, bytes.data(), i, EncodeValue(type, NAN));
    }
  }
}

bool TryDequantize(Random& random, const Shape& shape, const RandomBlocks& blocks) {
  static constexpr DataType kScales[] = {DataType::kFloat,   DataType::kFloat,
                                         DataType::kFloat16, DataType::kBfloat16,
                                         DataType::kInt32,   DataType::kFloat8E8M0};
  const DataType input = random.OneIn(12) ? DataType::kInt32 : random.Of(kQuantizedTypes);
  const OwnedTensor scale =
      RandomScale(random, random.Of(kScales), blocks.scale_shape, random.OneIn(3));
  const OwnedTensor x = RandomCodes(random, input, shape);
  DequantizeParameters parameters;
  parameters.x = x.View();
  parameters.scale = scale.View();
  parameters.granularity = blocks.granularity;
  const bool scale_is_output = Info(scale.type).kind == DataTypeKind::kFloat;
  parameters.output_type = scale_is_output ? MaybeType(random) : random.Of(kFloatTypes);
  OwnedTensor zero_point;
  if (!random.OneIn(3)) {
    const bool integer = Info(input).kind == DataTypeKind::kInteger;
    zero_point = RandomCodes(random, integer && random.OneIn(3) ? DataType::kInt32 : input,
                             blocks.scale_shape);
    if (Info(input).kind == DataTypeKind::kFloat8) {
      std::fill(zero_point.bytes.begin(), zero_point.bytes.end(), uint8_t{0});
    }
    parameters.zero_point = zero_point.View();
  }
  OwnedTensor tensor_scale(DataType::kFloat, random.OneIn(2) ? Shape{} : Shape{1});
  if (random.OneIn(5)) {
    tensor_scale.Set(0, std::bit_cast<uint32_t>(random.Normal()));
    parameters.tensor_scale = tensor_scale.View();
  }
  absl::StatusOr<DequantizePlan> plan = PlanDequantize(parameters);
  EXPECT_TRUE(plan.ok()) << plan.status();
  if (!plan.ok()) return false;
  std::vector<uint8_t> wanted(plan->output_bytes);
  oracle::Dequantize(*plan, x.bytes, absl::MakeSpan(wanted));
  MakeNansAlike(plan->output_type, plan->elements, wanted);
  for (const std::string& target : SupportedTargets()) {
    EXPECT_TRUE(SelectTarget(target).ok());
    const PiecedBytes pieces(random, x.bytes);
    std::vector<uint8_t> y(plan->output_bytes, 0xA5);
    const absl::Status status =
        Dequantize(*plan, pieces.chunks, SomeExecutor(random), Never, absl::MakeSpan(y));
    EXPECT_TRUE(status.ok()) << status;
    MakeNansAlike(plan->output_type, plan->elements, y);
    EXPECT_EQ(Difference(y, wanted), "") << Describe("Dequantize", *plan);
  }
  return true;
}

// DynamicQuantize of `x` on every target. Whether it has an answer.
bool IsTheReference(Random& random, const DynamicQuantizeParameters& parameters,
                    const OwnedTensor& x) {
  absl::StatusOr<DynamicQuantizePlan> plan = PlanDynamicQuantize(parameters);
  EXPECT_TRUE(plan.ok()) << plan.status();
  if (!plan.ok()) return false;
  DynamicAnswer wanted(*plan);
  QuantizationError wanted_error;
  const absl::Status wanted_status =
      oracle::DynamicQuantize(*plan, x.bytes, wanted.Output(), &wanted_error);
  for (const std::string& target : SupportedTargets()) {
    EXPECT_TRUE(SelectTarget(target).ok());
    const PiecedBytes pieces(random, x.bytes);
    DynamicAnswer got(*plan);
    QuantizationError error;
    const absl::Status status =
        DynamicQuantize(*plan, pieces.chunks, SomeExecutor(random), Never, got.Output(), &error);
    EXPECT_EQ(status.ToString(), wanted_status.ToString());
    if (!status.ok()) continue;
    const std::string what =
        absl::StrCat(Describe("DynamicQuantize", *plan), ", scale ",
                     std::string(Name(plan->scale_type)), ", rule ", static_cast<int>(plan->rule));
    EXPECT_EQ(Difference(got.tensor_scale, wanted.tensor_scale), "") << what;
    EXPECT_EQ(Difference(got.scale, wanted.scale), "") << what;
    EXPECT_EQ(Difference(got.zero_point, wanted.zero_point), "") << what;
    EXPECT_EQ(Difference(got.y, wanted.y), "") << what;
    if (parameters.report_error) {
      SCOPED_TRACE(what);
      ExpectSameError(error, wanted_error);
    }
  }
  return wanted_status.ok();
}

bool TryDynamicQuantize(Random& random, const Shape& shape, const RandomBlocks& blocks) {
  static constexpr DataType kMicroscaling[] = {DataType::kFloat8E4M3Fn, DataType::kFloat8E5M2,
                                               DataType::kFloat4E2M1, DataType::kInt8};
  DynamicQuantizeParameters parameters;
  parameters.output_type = random.Of(kQuantizedTypes);
  parameters.scale_type = MaybeType(random);
  if (random.OneIn(4)) {
    parameters.scale_type = DataType::kFloat8E8M0;
    parameters.output_type = random.Of(kMicroscaling);
  } else if (random.OneIn(6)) {
    parameters.scale_type = DataType::kFloat8E4M3Fn;
    parameters.output_type = DataType::kFloat4E2M1;
  }
  const bool integer = Info(parameters.output_type).kind == DataTypeKind::kInteger;
  if (integer && random.OneIn(3)) parameters.symmetry = Symmetry::kSymmetric;
  if (integer && random.OneIn(3) && parameters.scale_type != DataType::kFloat8E8M0) {
    parameters.symmetry = Symmetry::kAsymmetric;
  }
  parameters.non_finite = random.OneIn(2) ? NonFinite::kReject : NonFinite::kIgnore;
  const bool finite = parameters.non_finite == NonFinite::kReject && !random.OneIn(10);
  OwnedTensor x =
      RandomInput(random, random.Of(kFloatTypes), shape, nullptr, parameters.output_type, finite);
  // Groups of nothing but zeros, and others of one sign.
  if (random.OneIn(3) && x.elements > 0) {
    const int64_t begin = random.Below(x.elements);
    const int64_t end = begin + random.Below(x.elements - begin + 1);
    for (int64_t i = begin; i < end; ++i) x.Set(i, 0);
  }
  parameters.x = x.View();
  parameters.granularity = blocks.granularity;
  parameters.saturate = !random.OneIn(2);
  parameters.report_error = random.OneIn(4);
  return IsTheReference(random, parameters, x);
}

using Operation = bool (*)(Random&, const Shape&, const RandomBlocks&);

// Runs `operation` over and over for some seconds, each round with a seed of its own.
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

// Every way in which tasks share, or do not share, scales and ranges.
TEST(Operations, TensorsOfSeveralTasks) {
  struct Case {
    Shape shape;
    Shape block;
  };
  const Case cases[] = {
      {{300'007}, {-1}},             // one scale
      {{100'001, 3}, {-1, 1}},       // short rows, all alike
      {{1200, 251}, {-1, 1}},        // the same, and no period fits a window
      {{1200, 260}, {-1, 1}},        // rows just long enough
      {{150, 2011}, {-1, 1}},        // more scales than tasks keep for themselves
      {{3, 100'003}, {-1, 1}},       // so many that few tasks fit the memory
      {{300'000}, {32}},             // neighbours; no task shares a scale
      {{300, 1001}, {1, 32}},        // with short last blocks
      {{601, 500}, {128, 128}},      // tiles with ragged edges
      {{4000, 77}, {2, 5}},          // small tiles in short rows
      {{16, 64, 300}, {-1, 1, -1}},  // an axis in the middle
      {{2000, 3, 49}, {-1, 1, -1}},  // the same, short
      {{30, 40, 250}, {7, -1, 3}},   // all mixed
      {{300'000, 1}, {1, 1}},        // a scale an element
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
      if (number++ % 4 != 0 && IsShort()) continue;  // each operation gets every fourth of all
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

// Ranges that no reciprocal of their scale exists for, or none that is exact, beside common ones.
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

// Of a server, how many threads a request gets depends on what else it does; its answer must not.
TEST(Operations, ReportsAreTheSameWithAnyNumberOfThreads) {
  constexpr int64_t kRows = 1500;
  constexpr int64_t kColumns = 701;
  Random random(std::random_device{}());
  std::vector<float> values(static_cast<size_t>(kRows * kColumns));
  for (float& value : values) value = static_cast<float>(random.Below(1'000'003)) / 7919;
  OwnedTensor x;
  x.type = DataType::kFloat;
  x.shape = {kRows, kColumns};
  x.bytes.resize(values.size() * sizeof(float));
  std::memcpy(x.bytes.data(), values.data(), x.bytes.size());
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
      std::vector<uint8_t> y(plan->output_bytes), scale(plan->scale_bytes),
          zero_point(plan->zero_point_bytes);
      QuantizationError error;
      const DynamicQuantizeOutput output = {
          absl::MakeSpan(y), absl::MakeSpan(scale), absl::MakeSpan(zero_point), {}};
      ASSERT_TRUE(DynamicQuantize(*plan, parameters.x.bytes, executor, Never, output, &error).ok());
      if (!first.has_value()) first = error;
      EXPECT_EQ(error.mean_squared_error, first->mean_squared_error) << threads << " threads";
      EXPECT_EQ(error.sqnr_db, first->sqnr_db) << threads << " threads";
    }
  }
}

}  // namespace
}  // namespace quantd
