// Tensors in pieces: single cases, in addition to the random ones of split_test.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "fake_server.h"
#include "messages.h"
#include "quantd/client/status.h"
#include "quantd/operation.h"
#include "split/pieces.h"
#include "threads_fail.h"

namespace quantd::client {
namespace {

using testing::HasSubstr;

TEST(SplitCasesTest, AZeroPointHasTheShapeOfTheScale) {
  FakeServer server(5000), all(1 << 20);
  const Tensor x{v1::DATA_TYPE_FLOAT, {60, 60}, std::string(14'400, '\0')};
  const Tensor scale = Tensor::Of<float>(std::vector<float>(6, 1), {2, 3});
  const Tensor turned = Tensor::Of<uint8_t>(std::vector<uint8_t>(6, 1), {3, 2});
  QuantizeOptions options;
  options.granularity.block_shape = {30, 20};
  v1::QuantizeRequest request = RequestOf(options);
  SetTensor(x, request.mutable_x());
  SetTensor(scale, request.mutable_scale());
  SetTensor(turned, request.mutable_zero_point());
  const absl::Status whole = all.Quantize(request).status();
  const absl::Status status =
      split::Quantize(SenderTo(server, 5000), x, scale, turned, options).status();
  EXPECT_EQ(status.code(), whole.code());
  ASSERT_EQ(FieldViolations(status).size(), 1u);
  EXPECT_EQ(FieldViolations(status)[0].field, "zero_point");
  EXPECT_THAT(std::string(status.message()), HasSubstr("the shape [3, 2], scale has [2, 3]"));
  EXPECT_EQ(server.calls(), 0);
  // A scale for the whole tensor has the shape [] or [1].
  const Tensor one = Tensor::Scalar<float>(1);
  const Tensor of_one = Tensor::Of<uint8_t>(std::vector<uint8_t>{7}, {1});
  const auto good = split::Quantize(SenderTo(server, 5000), x, one, of_one, {});
  ASSERT_TRUE(good.ok()) << good.status();
  EXPECT_EQ(good->y.data, std::string(3600, '\7'));
}

TEST(SplitCasesTest, OneThreadSendsAllPiecesWhereThereIsNoOther) {
  FakeServer server(5000);
  const Tensor x = Tensor::Of<float>(std::vector<float>(6000, 3), {6000});
  const Tensor one = Tensor::Scalar<float>(1);
  const ThreadsFail threads_fail;
  const auto result = split::Quantize(SenderTo(server, 5000), x, one, {}, {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->y.data, std::string(6000, '\3'));
  EXPECT_GT(server.calls(), 3);
}

absl::StatusOr<v1::QuantizeEmbeddingsResponse> Embed(const v1::QuantizeEmbeddingsRequest& request) {
  QuantizeEmbeddingsParameters parameters;
  const std::string& bytes = request.x().raw_data();
  parameters.x = {DataType::kFloat,
                  Shape(request.x().shape().begin(), request.x().shape().end()),
                  {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}};
  parameters.recipe = static_cast<EmbeddingRecipe>(request.recipe());
  parameters.normalize = request.normalize();
  if (request.non_finite() == v1::NON_FINITE_IGNORE) parameters.non_finite = NonFinite::kIgnore;
  parameters.report_error = true;
  const absl::StatusOr<OperationPlan> plan = MakePlan(parameters);
  if (!plan.ok()) return plan.status();
  std::string y(LayoutOf(*plan).y.bytes, '\0');
  QuantizationError error;
  DynamicQuantizeOutput output;
  output.y = {reinterpret_cast<uint8_t*>(y.data()), y.size()};
  static const auto* const executor = new Executor(1);
  absl::Status status =
      Execute(*plan, parameters.x.bytes, *executor, [] { return false; }, output, &error);
  if (!status.ok()) return status;
  v1::QuantizeEmbeddingsResponse response;
  response.mutable_y()->set_data_type(v1::DATA_TYPE_INT8);
  response.mutable_y()->set_raw_data(y);
  v1::QuantizationError& report = *response.mutable_quantization_error();
  report.set_sqnr_db(error.sqnr_db);
  report.set_mean_squared_error(error.mean_squared_error);
  report.set_non_finite_elements(error.non_finite_elements);
  return response;
}

TEST(SplitCasesTest, TheReportCountsEmbeddingsThatHaveNoLengthAsTheyAre) {
  // Four rows per piece; the rows of the first piece are zeros, and have no error.
  constexpr int64_t kRows = 12, kWidth = 16;
  std::vector<float> values(kRows * kWidth);
  for (size_t i = 4 * kWidth; i < values.size(); ++i) values[i] = static_cast<float>(i % 13) - 5.5f;
  const Tensor x = Tensor::Of<float>(values, {kRows, kWidth});
  EmbeddingOptions options;
  options.recipe = v1::EMBEDDING_RECIPE_DIRECTION;
  options.normalize = true;
  options.report_error = true;
  v1::QuantizeEmbeddingsRequest request = RequestOf(options);
  SetTensor(x, request.mutable_x());
  const auto whole = Embed(request);
  ASSERT_TRUE(whole.ok()) << whole.status();
  split::Sender sender;
  sender.limits.message_bytes = split::kEnvelopeBytes + 4 * kWidth * sizeof(float);
  std::atomic<int> calls{0};
  sender.quantize_embeddings = [&](const v1::QuantizeEmbeddingsRequest& piece) {
    ++calls;
    return Embed(piece);
  };
  const auto pieces = split::QuantizeEmbeddings(sender, x, options);
  ASSERT_TRUE(pieces.ok()) << pieces.status();
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(pieces->y.data, whole->y().raw_data());
  ASSERT_TRUE(pieces->error.has_value());
  const v1::QuantizationError& wanted = whole->quantization_error();
  EXPECT_GT(wanted.mean_squared_error(), 0);
  EXPECT_NEAR(pieces->error->mean_squared_error(), wanted.mean_squared_error(), 1e-12);
  EXPECT_NEAR(pieces->error->sqnr_db(), wanted.sqnr_db(), 1e-6);
}

TEST(SplitCasesTest, ScalesOfATypeThatTheClientCannotReadAreAnError) {
  split::Sender sender;
  sender.limits.message_bytes = split::kEnvelopeBytes + 100;
  sender.dynamic_quantize = [](const v1::DynamicQuantizeRequest& request) {
    v1::DynamicQuantizeResponse response;
    response.mutable_y_scale()->set_data_type(request.scale_type());
    response.mutable_y_scale()->add_shape(request.x().shape(0));
    response.mutable_y_scale()->set_raw_data(std::string(request.x().shape(0), '\1'));
    return response;
  };
  DynamicQuantizeOptions options;
  options.scale_type = v1::DATA_TYPE_FLOAT8E5M2;
  const Tensor x = Tensor::Of<float>(std::vector<float>(1000, 3), {1000});
  const absl::Status status = split::DynamicQuantize(sender, x, options).status();
  EXPECT_TRUE(absl::IsInternal(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("y_scale is DATA_TYPE_FLOAT8E5M2"));
}

}  // namespace
}  // namespace quantd::client
