// quantd_quantize_embeddings against the core that is linked here: the same codes and errors. A
// failure prints the seed; QUANTD_TEST_SEED repeats it.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "c_testing.h"
#include "operations_random.h"
#include "quantd/core.h"
#include "quantd/field_error.h"
#include "quantd/quantize_embeddings.h"

namespace quantd {
namespace {

// Right and wrong requests: whether fields go together is random, too.
void QuantizeEmbeddingsOnce(Random& random) {
  constexpr DataType kInputs[] = {DataType::kFloat, DataType::kFloat16, DataType::kBfloat16};
  constexpr DataType kOutputs[] = {DataType::kUnspecified, DataType::kUint8, DataType::kInt8};
  const Shape shape = {static_cast<int64_t>(random.Below(9)),
                       static_cast<int64_t>(random.Below(70))};
  OwnedTensor x(random.Of(kInputs), shape);
  for (int64_t i = 0; i < x.elements; ++i) x.Set(i, EncodeValue(x.type, random.Normal()));
  if (x.elements > 0 && random.OneIn(8)) x.Set(0, EncodeValue(x.type, NAN));
  QuantizeEmbeddingsParameters wanted;
  wanted.x = x.View();
  wanted.recipe = static_cast<EmbeddingRecipe>(random.Below(5));
  wanted.output_type = random.Of(kOutputs);
  if (random.OneIn(2)) wanted.dimensions = static_cast<int64_t>(random.Below(70));
  wanted.normalize = random.OneIn(2);
  if (wanted.recipe == EmbeddingRecipe::kBits || random.OneIn(9)) {
    wanted.bit_order = static_cast<BitOrder>(random.Below(3));
    wanted.bit_threshold = static_cast<BitThreshold>(random.Below(3));
    wanted.signed_bits = static_cast<SignedBits>(random.Below(3));
  }
  if (random.OneIn(3)) wanted.non_finite = NonFinite::kIgnore;
  wanted.report_error = random.OneIn(4);
  const int64_t used = wanted.dimensions > 0 ? wanted.dimensions : shape[1];
  OwnedTensor ranges(DataType::kFloat, {2, used});
  for (int64_t i = 0; i < 2 * used; ++i) {
    ranges.Set(i, EncodeValue(DataType::kFloat, i < used            ? -1.0f
                                                : random.OneIn(500) ? -2.0f
                                                                    : 1.0f));
  }
  const quantd_tensor c_ranges = TensorOf(ranges);
  const bool has_ranges = wanted.recipe == EmbeddingRecipe::kRanges || random.OneIn(9);
  if (has_ranges) wanted.ranges = ranges.View();

  const auto plan = PlanQuantizeEmbeddings(wanted);
  std::vector<uint8_t> expected(plan.ok() ? plan->output_bytes : 0);
  std::vector<uint8_t> got(expected.size());
  QuantizationError report;
  absl::Status status = plan.status();
  if (plan.ok()) {
    status =
        QuantizeEmbeddings(*plan, wanted.x.bytes, One(), Never, absl::MakeSpan(expected), &report);
  }
  quantd_report c_report = {};
  quantd_embeddings call = {};
  call.struct_size = sizeof(call);
  call.recipe = static_cast<int32_t>(wanted.recipe);
  call.x_type = static_cast<int32_t>(x.type);
  call.x_rank = 2;
  call.x_shape = shape.data();
  call.x = x.bytes.data();
  call.x_size = x.bytes.size();
  call.dimensions = wanted.dimensions;
  call.normalize = wanted.normalize;
  if (wanted.non_finite == NonFinite::kIgnore) call.non_finite = QUANTD_NON_FINITE_IGNORE;
  call.ranges = has_ranges ? &c_ranges : nullptr;
  call.output_type = static_cast<int32_t>(wanted.output_type);
  call.bit_order = static_cast<int32_t>(wanted.bit_order);
  call.bit_threshold = static_cast<int32_t>(wanted.bit_threshold);
  call.signed_bits = static_cast<int32_t>(wanted.signed_bits);
  call.y = got.data();
  call.y_size = got.size();
  call.report = wanted.report_error ? &c_report : nullptr;
  call.threads = static_cast<int32_t>(random.Below(4));
  quantd_error error = {};
  error.struct_size = sizeof(error);
  const int32_t code = quantd_quantize_embeddings(&call, &error);
  EXPECT_EQ(code, static_cast<int32_t>(status.code())) << error.message << " / " << status;
  EXPECT_EQ(error.field, ErrorField(status));
  EXPECT_EQ(error.message, std::string(status.message()).substr(0, 959));
  if (!status.ok()) return;
  EXPECT_EQ(got, expected);
  if (wanted.report_error) {
    EXPECT_EQ(c_report.saturated_elements, report.saturated_elements);
    EXPECT_EQ(c_report.non_finite_elements, report.non_finite_elements);
  }
  // One byte fewer than the codes need.
  if (got.empty()) return;
  --call.y_size;
  EXPECT_EQ(quantd_quantize_embeddings(&call, &error), QUANTD_INVALID_ARGUMENT);
  EXPECT_STREQ(error.field, "y");
  ++call.y_size;
  const int32_t cancelled = 1;
  call.cancelled = &cancelled;
  EXPECT_EQ(quantd_quantize_embeddings(&call, &error), QUANTD_CANCELLED);
}

TEST(CEmbeddings, GivesWhatTheCoreGives) {
  const char* const given = std::getenv("QUANTD_TEST_SEED");
  const uint32_t seed = given != nullptr ? static_cast<uint32_t>(std::strtoul(given, nullptr, 10))
                                         : std::random_device()();
  SCOPED_TRACE("QUANTD_TEST_SEED=" + std::to_string(seed));
  Random random(seed);
  for (int i = 0; i < 3000 && !::testing::Test::HasFailure(); ++i) QuantizeEmbeddingsOnce(random);
}

}  // namespace
}  // namespace quantd
