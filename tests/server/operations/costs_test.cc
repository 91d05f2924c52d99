// What work is estimated to take: by operation, and by what makes it longer.
#include "server/operations/costs.h"

#include <gtest/gtest.h>

#include <utility>

#include "parameters.h"

namespace quantd::operations {
namespace costs_test {

constexpr int64_t kElements = 1 << 16;

template <typename Parameters>
Cost Estimate(Parameters parameters, wire::Encoding encoding = wire::Encoding::kRaw) {
  wire::Request request;
  request.parameters = std::move(parameters);
  request.output_encoding = encoding;
  return CostOf(request);
}

template <typename Parameters>
Parameters Plain(DataType x, const Shape& shape = {kElements}) {
  Parameters request;
  request.x = fuzz::ViewOf(x, shape);
  if constexpr (requires { request.scale; }) request.scale = fuzz::ViewOf(DataType::kFloat, {});
  return request;
}

// `change` makes the request take at least `times` as long.
template <typename Parameters, typename Change>
void Longer(double times, Change change) {
  const Parameters plain = Plain<Parameters>(DataType::kFloat, {kElements / 16, 16});
  Parameters changed = plain;
  change(changed);
  EXPECT_GE(Estimate(changed).time, times * Estimate(plain).time);
  EXPECT_GE(Estimate(plain, wire::Encoding::kValues).time, 5 * Estimate(plain).time);
}

TEST(Costs, AreThoseOfTheirTable) {
  const auto time = [](const Cost& cost) { return static_cast<double>(cost.time.count()); };
  const auto elements = [](double each) { return each * kElements; };
  EXPECT_NEAR(time(Estimate(Plain<QuantizeParameters>(DataType::kFloat))), elements(0.8) + 2, 1);
  EXPECT_NEAR(time(Estimate(Plain<QuantizeParameters>(DataType::kFloat16))), elements(0.8) + 2, 1);
  EXPECT_NEAR(time(Estimate(Plain<DequantizeParameters>(DataType::kInt2))), elements(0.6) + 2, 1);
  EXPECT_NEAR(time(Estimate(Plain<DynamicQuantizeParameters>(DataType::kFloat))), elements(0.9), 1);
  EXPECT_NEAR(time(Estimate(Plain<QuantizeEmbeddingsParameters>(DataType::kFloat))),
              elements(0.5) + 25, 1);
}

TEST(Costs, MakeWhatTakesLongLonger) {
  Longer<QuantizeParameters>(2.5, [](auto& to) { to.report_error = true; });
  Longer<QuantizeParameters>(3, [](auto& to) {
    to.scale = fuzz::ViewOf(DataType::kFloat, {kElements / 2});
    to.zero_point = fuzz::ViewOf(DataType::kUint8, {kElements / 2});
  });
  Longer<DequantizeParameters>(
      4, [](auto& to) { to.scale = fuzz::ViewOf(DataType::kFloat, {kElements}); });
  Longer<DynamicQuantizeParameters>(2.5, [](auto& to) { to.report_error = true; });
  Longer<DynamicQuantizeParameters>(4, [](auto& to) { to.granularity.block_size = 2; });
  Longer<DynamicQuantizeParameters>(4, [](auto& to) { to.granularity.block_shape = {1, 2}; });
  Longer<QuantizeEmbeddingsParameters>(5, [](auto& to) { to.report_error = true; });
  Longer<QuantizeEmbeddingsParameters>(4, [](auto& to) { to.normalize = true; });
  Longer<QuantizeEmbeddingsParameters>(4,
                                       [](auto& to) { to.recipe = EmbeddingRecipe::kDirection; });
  Longer<QuantizeEmbeddingsParameters>(
      10, [](auto& to) { to.x = fuzz::ViewOf(DataType::kFloat16, {kElements, 1}); });
}

TEST(Costs, BytesAreThoseThatAreReadOrWritten) {
  EXPECT_EQ(Estimate(Plain<QuantizeParameters>(DataType::kFloat)).bytes, 4U * kElements);
  EXPECT_EQ(Estimate(Plain<DequantizeParameters>(DataType::kUint8)).bytes, 5U * kElements);
  EXPECT_EQ(Estimate(Plain<DequantizeParameters>(DataType::kInt2)).bytes, 17U * kElements / 4);
}

}  // namespace costs_test
}  // namespace quantd::operations
