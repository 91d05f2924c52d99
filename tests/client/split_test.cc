// Tensors in pieces against one call: random requests of every type and granularity, over messages
// of many sizes, give the same bytes or cannot be cut. QUANTD_TEST_SEED repeats a failure.
#include "split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>

#include "fake_server.h"
#include "messages.h"
#include "operations_random.h"
#include "quantd/client/status.h"
#include "threads_fail.h"
#include "wire_testing.h"

namespace quantd::client {
namespace split_test {

using testing::HasSubstr;

Tensor TensorOf(const OwnedTensor& owned) {
  return {static_cast<v1::DataType>(owned.type),
          {owned.shape.begin(), owned.shape.end()},
          std::string(owned.bytes.begin(), owned.bytes.end())};
}

Granularity GranularityOf(const quantd::Granularity& from) {
  return {from.axis, from.block_size, {from.block_shape.begin(), from.block_shape.end()}};
}

void ExpectSame(const Tensor& got, const Tensor& wanted) {
  EXPECT_EQ(got.data_type, wanted.data_type);
  EXPECT_EQ(got.shape, wanted.shape);
  ASSERT_EQ(got.data.size(), wanted.data.size());
  for (size_t i = 0; i < got.data.size(); ++i) {
    ASSERT_EQ(got.data[i], wanted.data[i]) << "byte " << i << " of " << got.data.size();
  }
}

void ExpectSame(const std::optional<Tensor>& got, const std::optional<Tensor>& wanted) {
  ASSERT_EQ(got.has_value(), wanted.has_value());
  if (got.has_value()) ExpectSame(*got, *wanted);
}

void ExpectSame(const Quantized& got, const Quantized& wanted) {
  ExpectSame(got.y, wanted.y);
  ExpectSame(got.scale, wanted.scale);
  ExpectSame(got.zero_point, wanted.zero_point);
}

class SplitTest : public testing::Test {
 protected:
  SplitTest() : random_(static_cast<uint32_t>(wire::TestSeed(std::random_device()()))) {}

  // With this much room beside what is reserved for the rest of a message.
  ServerLimits SomeLimits() {
    static constexpr int64_t kBytes[] = {64, 128, 200, 500, 1000, 4000, 16'000};
    return {4096 + static_cast<uint64_t>(random_.Of(kBytes)), UINT64_MAX};
  }
  // Pieces to a server that accepts messages up to the limit.
  template <typename Arguments>
  void ExpectPiecesAreTheWhole(const Arguments& arguments) {
    const ServerLimits limits = SomeLimits();
    FakeServer server(limits.message_bytes);
    const Sender<Arguments> send = [&](const typename Arguments::Request& request) {
      return server.Answer(request);
    };
    const auto pieces = InPieces(arguments, limits, send);
    split_ += pieces.ok() && server.calls() > 1;
    if (absl::IsResourceExhausted(pieces.status())) {
      ++refused_;
      EXPECT_EQ(server.calls(), 0) << pieces.status();
      EXPECT_THAT(std::string(pieces.status().message()), HasSubstr("quantd::core"));
      return;
    }
    auto whole = all_.Answer(WholeRequest(arguments));
    ASSERT_EQ(pieces.status().code(), whole.status().code()) << pieces.status() << whole.status();
    if (whole.ok()) ExpectSame(*pieces, ResultOf(arguments, *std::move(whole)));
  }
  Shape SomeShape() {
    for (;;) {
      const Shape shape = RandomShape(random_, 6000);
      if (*ElementCount(shape, "x") > 0 && !shape.empty()) return shape;
    }
  }

  void QuantizeOnce();
  void DequantizeOnce();
  void DynamicQuantizeOnce();

  Random random_;
  FakeServer all_{std::numeric_limits<int>::max()};
  int split_ = 0, refused_ = 0;
};

constexpr DataType kInputs[] = {DataType::kFloat, DataType::kFloat16, DataType::kBfloat16,
                                DataType::kInt32};

void SplitTest::QuantizeOnce() {
  const Shape shape = SomeShape();
  const DataType output = random_.Of(kQuantizedTypes);
  const RandomBlocks blocks = MakeBlocks(random_, shape, false);
  const OwnedTensor owned =
      RandomScale(random_, random_.Of(kFloatTypes), blocks.scale_shape, false);
  const Tensor scale = TensorOf(owned);
  const Tensor x =
      TensorOf(RandomInput(random_, random_.Of(kInputs), shape, &owned, output, false));
  std::optional<Tensor> zero_point;
  if (random_.OneIn(2) && Info(output).kind != DataTypeKind::kFloat8) {
    zero_point = TensorOf(RandomCodes(random_, output, blocks.scale_shape));
  }
  QuantizeOptions options;
  if (!zero_point.has_value() || random_.OneIn(2)) {
    options.output_type = static_cast<v1::DataType>(output);
  }
  options.granularity = GranularityOf(blocks.granularity);
  options.saturate = random_.OneIn(2);
  options.precision = static_cast<v1::DataType>(random_.OneIn(2) ? DataType::kUnspecified
                                                                 : random_.Of(kFloatTypes));
  ExpectPiecesAreTheWhole(QuantizeArguments{x, scale, zero_point, options});
}

void SplitTest::DequantizeOnce() {
  const Shape shape = SomeShape();
  const DataType type = random_.Of(kQuantizedTypes);
  const RandomBlocks blocks = MakeBlocks(random_, shape, false);
  OwnedTensor owned = RandomScale(random_, random_.Of(kFloatTypes), blocks.scale_shape, true);
  // IEEE 754 does not define the sign of a product of two NaN.
  for (int64_t i = 0; i < owned.elements; ++i) {
    const uint32_t code = LoadCode(owned.type, owned.bytes.data(), i);
    if (std::isnan(DecodeFloat(owned.type, code))) owned.Set(i, EncodeValue(owned.type, 1));
  }
  const Tensor scale = TensorOf(owned);
  const Tensor x = TensorOf(RandomCodes(random_, type, shape));
  std::optional<Tensor> zero_point;
  if (random_.OneIn(2) && Info(type).kind != DataTypeKind::kFloat8) {
    zero_point = TensorOf(RandomCodes(random_, type, blocks.scale_shape));
  }
  DequantizeOptions options;
  if (random_.OneIn(2)) options.output_type = static_cast<v1::DataType>(random_.Of(kFloatTypes));
  options.granularity = GranularityOf(blocks.granularity);
  if (random_.OneIn(2)) options.tensor_scale = Tensor::Scalar<float>(0.75f);
  ExpectPiecesAreTheWhole(DequantizeArguments{x, scale, zero_point, options});
}

void SplitTest::DynamicQuantizeOnce() {
  const Shape shape = SomeShape();
  const DataType output = random_.OneIn(3) ? DataType::kFloat4E2M1 : random_.Of(kQuantizedTypes);
  const RandomBlocks blocks = MakeBlocks(random_, shape, true);
  const Tensor x = TensorOf(
      RandomInput(random_, random_.Of(kInputs), shape, nullptr, output, !random_.OneIn(3)));
  static constexpr DataType kScaleTypes[] = {DataType::kUnspecified, DataType::kFloat16,
                                             DataType::kBfloat16, DataType::kFloat8E8M0,
                                             DataType::kFloat8E4M3Fn};
  DynamicQuantizeOptions options;
  options.output_type = static_cast<v1::DataType>(output);
  options.granularity = GranularityOf(blocks.granularity);
  options.saturate = random_.OneIn(2);
  options.scale_type = static_cast<v1::DataType>(random_.Of(kScaleTypes));
  options.symmetry = static_cast<v1::Symmetry>(random_.Below(3));
  options.non_finite = static_cast<v1::NonFinite>(random_.Below(3));
  ExpectPiecesAreTheWhole(DynamicQuantizeArguments{x, options});
}

TEST_F(SplitTest, PiecesOfQuantizeAreTheWhole) {
  for (int i = 0; i < 500 && !HasFailure(); ++i) QuantizeOnce();
  EXPECT_GT(split_, 100) << refused_;
}

TEST_F(SplitTest, PiecesOfDequantizeAreTheWhole) {
  for (int i = 0; i < 500 && !HasFailure(); ++i) DequantizeOnce();
  EXPECT_GT(split_, 100) << refused_;
}

TEST_F(SplitTest, PiecesOfDynamicQuantizeAreTheWhole) {
  for (int i = 0; i < 800 && !HasFailure(); ++i) DynamicQuantizeOnce();
  EXPECT_GT(split_, 30) << refused_;
}

constexpr ServerLimits kSmall{5000, UINT64_MAX};

TEST(Split, WhatCannotBeCutSaysWhy) {
  const Tensor x{v1::DATA_TYPE_FLOAT, {30, 100}, std::string(12'000, '\0')};
  const Tensor scale = Tensor::Scalar<float>(1);
  const Sender<DynamicQuantizeArguments> never = [](const v1::DynamicQuantizeRequest&) {
    return absl::InternalError("sent");
  };
  struct Case {
    const char* why;
    Tensor x;
    Granularity granularity;
    bool report_error = false;
    v1::DataType scale_type = v1::DATA_TYPE_UNSPECIFIED;
  };
  Tensor flat = x, one = x;
  flat.shape = {3000};
  one.shape = {1, 3000};
  const Case cases[] = {
      {"a scale belongs to all of its rows", x, {}},
      {"a scale belongs to all of its rows", x, {1, 0, {}}},
      {"a scale belongs to all of its rows", x, {{}, 0, {-1, 1}}},
      {"a scale belongs to all of its rows", x, {0, 30, {}}},
      {"the rows of a scale do not fit", x, {0, 15, {}}},
      {"a row of it does not fit", one, {0, 0, {}}},
      {"report_error is of one message", flat, {0, 0, {}}, true},
      {"NVFP4", flat, {0, 16, {}}, false, v1::DATA_TYPE_FLOAT8E4M3FN},
  };
  for (const Case& c : cases) {
    DynamicQuantizeOptions options;
    options.granularity = c.granularity;
    options.report_error = c.report_error;
    options.scale_type = c.scale_type;
    const absl::Status status =
        InPieces(DynamicQuantizeArguments{c.x, options}, kSmall, never).status();
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.why));
  }
}

TEST(Split, WhatDoesNotGoTogetherNamesItsField) {
  const Sender<QuantizeArguments> never = [](const v1::QuantizeRequest&) {
    return absl::InternalError("sent");
  };
  const auto floats = [](std::vector<int64_t> shape, size_t count) {
    return Tensor{v1::DATA_TYPE_FLOAT, std::move(shape), std::string(4 * count, '\0')};
  };
  struct Case {
    const char* field;
    Tensor x, scale;
    std::optional<Tensor> zero_point;
    Granularity granularity;
  };
  const Case cases[] = {
      {"x", floats({2999}, 3000), floats({}, 1), {}, {}},
      {"x", floats({-1, 3000}, 3000), floats({}, 1), {}, {}},
      {"x", floats({0, 3000}, 3000), floats({}, 1), {}, {}},
      {"x", floats({INT64_MAX, 3000}, 3000), floats({}, 1), {}, {}},
      {"scale", floats({3000}, 3000), floats({7}, 8), {}, {}},
      {"axis", floats({3000}, 3000), floats({7}, 7), {}, {}},
      {"axis", floats({30, 100}, 3000), floats({30}, 30), {}, {2, 0, {}}},
      {"scale", floats({30, 100}, 3000), floats({29}, 29), {}, {0, 0, {}}},
      {"scale", floats({30, 100}, 3000), floats({7, 100}, 700), {}, {}},
      {"block_shape", floats({30, 100}, 3000), floats({}, 1), {}, {{}, 0, {3}}},
      {"zero_point", floats({30, 100}, 3000), floats({30}, 30), floats({10, 3}, 30), {0, 0, {}}},
  };
  for (const Case& c : cases) {
    QuantizeOptions options;
    options.granularity = c.granularity;
    const absl::Status status =
        InPieces(QuantizeArguments{c.x, c.scale, c.zero_point, options}, kSmall, never).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    ASSERT_EQ(FieldViolations(status).size(), 1u) << status;
    EXPECT_EQ(FieldViolations(status)[0].field, c.field) << status;
  }
}

class PiecesOfRows : public testing::Test {
 protected:
  absl::StatusOr<Quantized> Run(const Sender<QuantizeArguments>& send) {
    return InPieces(QuantizeArguments{x_, scale_, {}, {}}, kSmall, send);
  }
  const Tensor x_ = Tensor::Of<float>(std::vector<float>(100'000, 3), {100'000});
  const Tensor scale_ = Tensor::Scalar<float>(1);
  FakeServer server_{5000};
  const Sender<QuantizeArguments> real_ = [this](const v1::QuantizeRequest& request) {
    return server_.Answer(request);
  };
};

TEST_F(PiecesOfRows, NothingIsStartedAfterAFailure) {
  std::atomic<int> calls{0};
  const absl::Status status =
      Run([&](const v1::QuantizeRequest& request) -> absl::StatusOr<v1::QuantizeResponse> {
        if (++calls > 5) return absl::UnavailableError("gone");
        return real_(request);
      }).status();
  EXPECT_EQ(status, absl::UnavailableError("gone"));
  EXPECT_LT(calls, 10);  // of 443
}

TEST_F(PiecesOfRows, OneThreadSendsAllWhereThereIsNoOther) {
  const ThreadsFail threads_fail;
  const auto result = Run(real_);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->y.data, std::string(100'000, '\3'));
}

TEST_F(PiecesOfRows, AnErrorSaysWhereItsPieceBegins) {
  const absl::Status status =
      Run([&](const v1::QuantizeRequest& request) -> absl::StatusOr<v1::QuantizeResponse> {
        if (server_.calls() > 3) return absl::InvalidArgumentError("x[3] is bad");
        return real_(request);
      }).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("x[3] is bad (in the piece of x that"));
}

TEST_F(PiecesOfRows, AnAnswerThatIsNoneIsNotBelieved) {
  const auto changed = [&](const std::function<void(v1::Tensor*)>& change) {
    std::atomic<int> calls{0};
    return Run([&](const v1::QuantizeRequest& request) {
             auto response = real_(request);
             if (++calls == 7) change(response->mutable_y());
             return response;
           })
        .status();
  };
  EXPECT_TRUE(changed([](v1::Tensor*) {}).ok());
  void (*const changes[])(v1::Tensor*) = {
      [](v1::Tensor* y) { y->Clear(); }, [](v1::Tensor* y) { y->clear_raw_data(); },
      [](v1::Tensor* y) { y->set_shape(0, 1); }, [](v1::Tensor* y) { y->add_shape(1); },
      [](v1::Tensor* y) { y->set_data_type(v1::DATA_TYPE_INT8); }};
  for (const auto change : changes) EXPECT_TRUE(absl::IsInternal(changed(change)));
}

TEST(Split, EmbeddingsAreCutBetweenRows) {
  const Tensor x = Tensor::Of<float>(std::vector<float>(12 * 100, 0.5F), {12, 100});
  EmbeddingOptions options;
  options.recipe = v1::EMBEDDING_RECIPE_BITS;
  std::atomic<int> calls{0};
  const Sender<QuantizeEmbeddingsArguments> send = [&](const v1::QuantizeEmbeddingsRequest& piece)
      -> absl::StatusOr<v1::QuantizeEmbeddingsResponse> {
    ++calls;
    v1::QuantizeEmbeddingsResponse response;
    response.mutable_y()->set_data_type(v1::DATA_TYPE_UINT8);
    response.mutable_y()->add_shape(piece.x().shape(0));
    response.mutable_y()->add_shape(13);
    response.mutable_y()->set_raw_data(std::string(13 * piece.x().shape(0), '\xFF'));
    return response;
  };
  const auto result = InPieces(QuantizeEmbeddingsArguments{x, options}, kSmall, send);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(calls, 6);
  EXPECT_EQ(result->y.shape, (std::vector<int64_t>{12, 13}));
  EXPECT_EQ(result->y.data, std::string(12 * 13, '\xFF'));
}

}  // namespace split_test
}  // namespace quantd::client
