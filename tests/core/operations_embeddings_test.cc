// QuantizeEmbeddings against plain loops over its rules, bit for bit: random requests of every
// type, recipe and switch, in pieces of every kind, on every target and several thread counts. A
// failure prints the seed; QUANTD_TEST_SEED repeats it.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/kernel_table.h"
#include "operations_random.h"
#include "quantd/quantize_embeddings.h"
#include "quantd/targets.h"
#include "rules/embeddings.h"
#include "tensors.h"

namespace quantd {
namespace operations_embeddings_test {

using Recipe = EmbeddingRecipe;

bool Never() { return false; }

struct Oracle {
  int64_t non_finite = -1;  // index of the first
  std::vector<uint8_t> y;
  ErrorSums sums;
};

// One row, as core/EMBEDDINGS.md defines it.
void AddRow(const QuantizeEmbeddingsParameters& request, const QuantizeEmbeddingsPlan& plan,
            std::vector<float> row, Oracle& oracle) {
  row.resize(static_cast<size_t>(plan.dimensions));
  rules::Squares squares;
  for (size_t i = 0; i < row.size(); ++i) squares.Add(row[i], i);
  if (request.normalize && rules::IsLength(squares.Length())) {
    for (float& x : row) x = rules::Normalized(x, squares.Length());
    squares = {};
    for (size_t i = 0; i < row.size(); ++i) squares.Add(row[i], i);
  }
  const double length = squares.Length();
  const bool is_signed = plan.output_type == DataType::kInt8;
  if (plan.recipe == Recipe::kBits) {
    std::vector<uint8_t> bytes((row.size() + 7) / 8);
    for (size_t i = 0; i < row.size(); ++i) {
      const bool bit = rules::Bit(row[i], request.bit_threshold == BitThreshold::kGreaterOrEqual);
      if (bit) bytes[i / 8] |= rules::BitOf(i, request.bit_order == BitOrder::kLsbFirst);
    }
    const bool offset = is_signed && request.signed_bits != SignedBits::kTwosComplement;
    for (uint8_t byte : bytes) oracle.y.push_back(static_cast<uint8_t>(byte - (offset ? 128 : 0)));
    return;
  }
  for (size_t i = 0; i < row.size(); ++i) {
    rules::EmbeddingCode code;
    double back = 0;
    if (plan.recipe == Recipe::kUnit) {
      code = rules::UnitCode(row[i]);
      back = rules::DequantizeUnit(code.code);
    } else if (plan.recipe == Recipe::kDirection) {
      code = rules::DirectionCode(row[i], length);
      back = rules::DequantizeDirection(code.code, length);
    } else {
      code = rules::RangeCode(row[i], plan.lows[i], plan.steps[i]);
      back = rules::DequantizeRange(code.code, 0, plan.lows[i], plan.steps[i]);
      if (is_signed) code.code = static_cast<uint8_t>(code.code - 128);
    }
    oracle.y.push_back(code.code);
    oracle.sums.saturated_elements += code.saturated;
    if (!std::isfinite(row[i])) {
      ++oracle.sums.non_finite_elements;
      continue;
    }
    ++oracle.sums.finite_elements;
    oracle.sums.signal += static_cast<double>(row[i]) * row[i];
    oracle.sums.noise += (row[i] - back) * (row[i] - back);
    oracle.sums.max_absolute_error =
        std::max(oracle.sums.max_absolute_error, std::fabs(row[i] - back));
  }
}

Oracle Answer(const QuantizeEmbeddingsParameters& request, const QuantizeEmbeddingsPlan& plan,
              const std::vector<float>& x) {
  Oracle oracle;
  for (size_t i = 0; i < x.size(); ++i) {
    if (!std::isfinite(x[i]) && oracle.non_finite < 0) oracle.non_finite = static_cast<int64_t>(i);
  }
  for (int64_t r = 0; r < plan.rows; ++r) {
    const auto begin = x.begin() + r * plan.width;
    AddRow(request, plan, std::vector<float>(begin, begin + plan.width), oracle);
  }
  return oracle;
}

float Component(Random& random) {
  switch (random.Below(12)) {
    case 0:
      return 0;
    case 1:
      return -0.0f;
    case 2:  // on an edge of [-1, 1]
      return -1 + static_cast<float>(random.Below(256)) * (2.0f / 255);
    case 3:
      return static_cast<float>(random.Below(5)) - 2;
    default:
      return static_cast<float>(random.Below(1 << 24)) * 0x1.4p-23f - 1.25f;
  }
}

// Elements as FLOAT, and a tensor of a type at any address.
struct X {
  std::vector<float> floats;
  std::vector<uint8_t> bytes;
  TensorView view;
};
void MakeX(Random& random, DataType type, const Shape& shape, X& x) {
  const int64_t elements = ElementCount(shape, "x").value();
  const size_t width = static_cast<size_t>(Info(type).bits / 8);
  const size_t misalignment = static_cast<size_t>(random.Below(8));
  x.bytes.resize(static_cast<size_t>(elements) * width + misalignment);
  const bool finite = !random.OneIn(4);
  for (int64_t i = 0; i < elements; ++i) {
    float value = Component(random);
    if (!finite && random.OneIn(elements + 1)) value = random.OneIn(2) ? NAN : -INFINITY;
    uint32_t code = std::bit_cast<uint32_t>(value);
    if (type == DataType::kFloat16) code = EncodeFloat16(value);
    if (type == DataType::kBfloat16) code = EncodeBfloat16(value);
    std::memcpy(x.bytes.data() + misalignment + static_cast<size_t>(i) * width, &code, width);
    x.floats.push_back(DecodeFloat(type, code));
  }
  x.view.data_type = type;
  x.view.shape = shape;
  x.view.bytes = absl::MakeConstSpan(x.bytes).subspan(misalignment);
}

QuantizeEmbeddingsParameters RandomRequest(Random& random, const Shape& shape,
                                           std::vector<float>& ranges) {
  QuantizeEmbeddingsParameters request;
  request.recipe = static_cast<Recipe>(1 + random.Below(4));
  const int64_t width = shape.back();
  if (random.OneIn(3)) request.dimensions = random.Below(width + 1);
  const int64_t used = request.dimensions == 0 ? width : request.dimensions;
  if (request.recipe == Recipe::kRanges) {
    const bool narrow = random.OneIn(4);  // its step may be replaced by a factor
    for (int64_t i = 0; i < used; ++i)
      ranges.push_back(random.OneIn(3) ? -1 : -Component(random) - 2);
    for (int64_t i = 0; i < used; ++i) {
      const float low = ranges[static_cast<size_t>(i)];
      ranges.push_back(random.OneIn(20) ? low : narrow && i == 0 ? low + 0x1p110f : low + 2);
    }
    const auto* const bytes = reinterpret_cast<const uint8_t*>(ranges.data());
    request.ranges =
        TensorView{DataType::kFloat, {2, used}, absl::MakeConstSpan(bytes, ranges.size() * 4)};
  }
  const bool bits = request.recipe == Recipe::kBits;
  if ((bits || request.recipe == Recipe::kRanges) && random.OneIn(2)) {
    request.output_type = DataType::kInt8;
    if (bits) request.signed_bits = static_cast<SignedBits>(random.Below(3));
  }
  if (bits) {
    request.bit_order = static_cast<BitOrder>(random.Below(3));
    request.bit_threshold = static_cast<BitThreshold>(random.Below(3));
  } else {
    request.report_error = random.OneIn(4);
  }
  request.normalize = random.OneIn(3);
  request.non_finite = random.OneIn(2) ? NonFinite::kReject : NonFinite::kIgnore;
  return request;
}

Shape RandomShape(Random& random) {
  if (random.OneIn(40)) return {random.Below(2) + 1, 20'000 + random.Below(100)};
  if (random.OneIn(40)) return {300, 1000 + random.Below(600)};
  Shape shape;
  if (random.OneIn(2)) shape.push_back(random.Below(4));
  if (!random.OneIn(4)) shape.push_back(random.Below(20));
  shape.push_back(random.OneIn(4) ? random.Below(3000) : random.Below(100));
  return shape;
}

void TestRequest(Random& random) {
  static const auto* const pools =
      new std::vector<const Executor*>{new Executor(1), new Executor(2), new Executor(5)};
  const Shape shape = RandomShape(random);
  constexpr DataType kTypes[] = {DataType::kFloat, DataType::kFloat, DataType::kFloat16,
                                 DataType::kBfloat16};
  X x;
  MakeX(random, kTypes[random.Below(4)], shape, x);
  std::vector<float> ranges;
  QuantizeEmbeddingsParameters request = RandomRequest(random, shape, ranges);
  request.x = x.view;
  const absl::StatusOr<QuantizeEmbeddingsPlan> plan = PlanQuantizeEmbeddings(request);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const Oracle want = Answer(request, *plan, x.floats);
  for (const std::string& target : SupportedTargets()) {
    ASSERT_TRUE(SelectTarget(target).ok());
    std::vector<uint8_t> y(plan->output_bytes + 1, 0xA5);
    QuantizationError error;
    const absl::Status status =
        QuantizeEmbeddings(*plan, x.view.bytes, *(*pools)[static_cast<size_t>(random.Below(3))],
                           Never, absl::MakeSpan(y.data(), plan->output_bytes), &error);
    const std::string what = absl::StrCat(target, ", recipe ", static_cast<int>(plan->recipe),
                                          ", shape ", ShapeString(shape), ", dimensions ",
                                          plan->dimensions, ", normalize ", plan->normalize);
    ASSERT_EQ(y.back(), 0xA5) << what;
    if (want.non_finite >= 0 && request.non_finite == NonFinite::kReject) {
      ASSERT_EQ(
          ErrorText(status),
          absl::StrCat("x: x[", want.non_finite, "] is ",
                       x.floats[static_cast<size_t>(want.non_finite)],
                       ", QuantizeEmbeddings takes finite values unless non_finite is IGNORE"))
          << what;
      continue;
    }
    ASSERT_TRUE(status.ok()) << status << what;
    y.pop_back();
    ASSERT_EQ(y.size(), want.y.size());
    for (size_t i = 0; i < y.size(); ++i)
      ASSERT_EQ(y[i], want.y[i]) << "byte " << i << ", " << what;
    if (!request.report_error) continue;
    const QuantizationError report = want.sums.Finish();
    ASSERT_EQ(error.saturated_elements, report.saturated_elements) << what;
    ASSERT_EQ(error.non_finite_elements, report.non_finite_elements) << what;
    ASSERT_EQ(error.max_absolute_error, report.max_absolute_error) << what;
    ASSERT_NEAR(error.mean_squared_error, report.mean_squared_error,
                1e-9 * report.mean_squared_error)
        << what;
    if (std::isfinite(report.sqnr_db)) {
      ASSERT_NEAR(error.sqnr_db, report.sqnr_db, 1e-6) << what;
    }
  }
}

TEST(Embeddings, RandomRequests) {
  const char* const text = std::getenv("QUANTD_TEST_SEED");
  const uint64_t seed = text != nullptr ? std::strtoull(text, nullptr, 10) : 20261122;
  for (uint64_t i = 0; i < (text != nullptr ? 1 : IsShort() ? 500 : 1500); ++i) {
    Random random(static_cast<uint32_t>(seed + i));
    TestRequest(random);
    if (HasFatalFailure()) {
      ADD_FAILURE() << "QUANTD_TEST_SEED=" << seed + i;
      break;
    }
  }
  EXPECT_TRUE(SelectTarget("").ok());
}

// Stopped in the middle, between rows and within one.
TEST(Embeddings, Stops) {
  const Executor pool(2);
  for (const Shape& shape : {Shape{4000, 1000}, Shape{1, 4'000'000}}) {
    for (const Recipe recipe : {Recipe::kBits, Recipe::kDirection}) {
      const Tensor x = Zeros(DataType::kFloat, shape);
      const auto plan = PlanQuantizeEmbeddings({.x = x, .recipe = recipe}).value();
      std::vector<uint8_t> y(plan.output_bytes);
      std::atomic<int> asked = 0;
      const absl::Status status = QuantizeEmbeddings(
          plan, x.view().bytes, pool, [&] { return ++asked > 3; }, absl::MakeSpan(y), nullptr);
      EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
      EXPECT_LT(asked, 12);
    }
  }
}

}  // namespace operations_embeddings_test
}  // namespace quantd
