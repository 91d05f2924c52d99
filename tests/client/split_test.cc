// Tensors in pieces against one call: random requests of every type and granularity, over messages
// of many sizes, give the same bytes. A failure prints the seed; QUANTD_TEST_SEED repeats it.
#include "split/split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>
#include <string>

#include "absl/strings/match.h"
#include "fake_server.h"
#include "messages.h"
#include "operations_random.h"
#include "quantd/client/status.h"
#include "split/pieces.h"

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

bool Near(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b)) || std::fabs(a - b) <= 1e-9 * std::fabs(b);
}

void ExpectSame(const std::optional<v1::QuantizationError>& got,
                const std::optional<v1::QuantizationError>& wanted) {
  ASSERT_EQ(got.has_value(), wanted.has_value());
  if (!got.has_value()) return;
  EXPECT_EQ(got->saturated_elements(), wanted->saturated_elements());
  EXPECT_EQ(got->non_finite_elements(), wanted->non_finite_elements());
  EXPECT_TRUE(Near(got->max_absolute_error(), wanted->max_absolute_error()))
      << got->max_absolute_error() << " " << wanted->max_absolute_error();
  EXPECT_TRUE(Near(got->mean_squared_error(), wanted->mean_squared_error()))
      << got->mean_squared_error() << " " << wanted->mean_squared_error();
  EXPECT_TRUE(Near(got->sqnr_db(), wanted->sqnr_db()) ||
              std::fabs(got->sqnr_db() - wanted->sqnr_db()) < 1e-6)
      << got->sqnr_db() << " " << wanted->sqnr_db();
}

void ExpectSame(const Quantized& got, const Quantized& wanted) {
  ExpectSame(got.y, wanted.y);
  ExpectSame(got.scale, wanted.scale);
  ExpectSame(got.zero_point, wanted.zero_point);
  ExpectSame(got.tensor_scale, wanted.tensor_scale);
  ExpectSame(got.error, wanted.error);
}

class SplitTest : public testing::Test {
 protected:
  SplitTest() : random_(Seed()) {}

  uint32_t Seed() {
    const char* const seed = std::getenv("QUANTD_TEST_SEED");
    seed_ = seed != nullptr ? static_cast<uint32_t>(std::strtoul(seed, nullptr, 10))
                            : std::random_device()();
    return seed_;
  }
  // A limit with this much room beside what is calculated for the rest of a message.
  uint64_t Limit() {
    static constexpr int64_t kBytes[] = {64, 128, 200, 500, 1000, 4000, 16'000};
    return split::kEnvelopeBytes + static_cast<uint64_t>(random_.Of(kBytes));
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
  Quantized SameInPieces(const Tensor& x, const DynamicQuantizeOptions& options);

  uint32_t seed_ = 0;
  Random random_;
  FakeServer all_{std::numeric_limits<int>::max()};
  int split_ = 0, too_large_ = 0;
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
  options.report_error = random_.OneIn(2);
  const uint64_t limit = Limit();
  FakeServer server(limit);

  v1::QuantizeRequest request = RequestOf(options);
  SetTensor(x, request.mutable_x());
  SetTensor(scale, request.mutable_scale());
  if (zero_point.has_value()) SetTensor(*zero_point, request.mutable_zero_point());
  absl::StatusOr<v1::QuantizeResponse> whole = all_.Quantize(request);
  const absl::StatusOr<Quantized> got =
      split::Quantize(SenderTo(server, limit), x, scale, zero_point, options);
  if (absl::IsResourceExhausted(got.status())) {
    ++too_large_;
    return;
  }
  ASSERT_EQ(got.status().code(), whole.status().code()) << got.status() << whole.status();
  if (!whole.ok()) return;
  split_ += server.calls() > 1;
  const Quantized wanted = TakeResult(*std::move(whole));
  ExpectSame(got->y, wanted.y);
  ExpectSame(got->error, wanted.error);
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
  const uint64_t limit = Limit();
  FakeServer server(limit);

  v1::DequantizeRequest request = RequestOf(options);
  SetTensor(x, request.mutable_x());
  SetTensor(scale, request.mutable_scale());
  if (zero_point.has_value()) SetTensor(*zero_point, request.mutable_zero_point());
  absl::StatusOr<v1::DequantizeResponse> whole = all_.Dequantize(request);
  const absl::StatusOr<Tensor> got =
      split::Dequantize(SenderTo(server, limit), x, scale, zero_point, options);
  ASSERT_TRUE(whole.ok() && got.ok()) << got.status() << whole.status();
  split_ += server.calls() > 1;
  ExpectSame(*got, TakeTensor(std::move(*whole->mutable_y())));
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
  options.report_error = random_.OneIn(2);
  const uint64_t limit = Limit();
  FakeServer server(limit);

  v1::DynamicQuantizeRequest request = RequestOf(options);
  SetTensor(x, request.mutable_x());
  absl::StatusOr<v1::DynamicQuantizeResponse> whole = all_.DynamicQuantize(request);
  const absl::StatusOr<Quantized> got = split::DynamicQuantize(SenderTo(server, limit), x, options);
  if (absl::IsResourceExhausted(got.status())) {
    ++too_large_;
    return;
  }
  ASSERT_EQ(got.status().code(), whole.status().code()) << got.status() << whole.status();
  if (!whole.ok()) {
    // The index of a non-finite element is that in the whole tensor.
    if (absl::StrContains(whole.status().message(), "takes finite values")) {
      EXPECT_EQ(got.status().message(), whole.status().message());
    }
    return;
  }
  split_ += server.calls() > 1;
  ExpectSame(*got, TakeResult(*std::move(whole)));
}

Quantized SplitTest::SameInPieces(const Tensor& x, const DynamicQuantizeOptions& options) {
  v1::DynamicQuantizeRequest request = RequestOf(options);
  SetTensor(x, request.mutable_x());
  absl::StatusOr<v1::DynamicQuantizeResponse> whole = all_.DynamicQuantize(request);
  FakeServer server(split::kEnvelopeBytes + 1000);
  const absl::StatusOr<Quantized> got =
      split::DynamicQuantize(SenderTo(server, split::kEnvelopeBytes + 1000), x, options);
  EXPECT_TRUE(whole.ok() && got.ok()) << whole.status() << got.status();
  EXPECT_GT(server.calls(), 1);
  Quantized wanted = TakeResult(*std::move(whole));
  ExpectSame(*got, wanted);
  return wanted;
}

TEST_F(SplitTest, PiecesOfQuantizeAreTheWhole) {
  SCOPED_TRACE("QUANTD_TEST_SEED=" + std::to_string(seed_));
  for (int i = 0; i < 1500 && !HasFailure(); ++i) QuantizeOnce();
  EXPECT_GT(split_, 700);
  EXPECT_EQ(too_large_, 0);
}

TEST_F(SplitTest, PiecesOfDequantizeAreTheWhole) {
  SCOPED_TRACE("QUANTD_TEST_SEED=" + std::to_string(seed_));
  for (int i = 0; i < 1500 && !HasFailure(); ++i) DequantizeOnce();
  EXPECT_GT(split_, 700);
}

TEST_F(SplitTest, PiecesOfDynamicQuantizeAreTheWhole) {
  SCOPED_TRACE("QUANTD_TEST_SEED=" + std::to_string(seed_));
  for (int i = 0; i < 3000 && !HasFailure(); ++i) DynamicQuantizeOnce();
  EXPECT_GT(split_, 1000);
  EXPECT_LT(too_large_, 300);  // two rows of eight elements and their extremes are the least
}

// The scale is 1 and the zero point -26, and -101.5 is a tie: -102 - 26 is the code -128, which
// Quantize writes and DynamicQuantize does not. The pieces are Quantize's, so the client corrects
// the code and the report.
TEST_F(SplitTest, TheReportOfARaisedCodeCountsTheZeroPoint) {
  std::vector<float> values(3000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 100);
  values[1000] = -101.5f;
  values[2000] = 152.5f;
  DynamicQuantizeOptions options;
  options.output_type = v1::DATA_TYPE_INT8;
  options.symmetry = v1::SYMMETRY_ASYMMETRIC;
  options.report_error = true;
  const Quantized wanted = SameInPieces(Tensor::Of<float>(values, {3000}), options);
  EXPECT_EQ(wanted.y.data[1000], static_cast<char>(-127));
  EXPECT_EQ(wanted.zero_point->data, std::string(1, static_cast<char>(-26)));
  EXPECT_EQ(wanted.error->max_absolute_error(), 0.5);
}

// INT32 is divided as the nearest FLOAT, and its error is that of the integer.
TEST_F(SplitTest, TheReportOfLargeIntegersIsOfTheIntegers) {
  std::vector<int32_t> values(3000);
  int i = 0;
  for (int32_t& value : values) value = ++i % 30 == 0 ? -1'015'000'095 : i % 100 * 10'000'000 + i;
  values[2000] = 1'525'000'063;
  DynamicQuantizeOptions options;
  options.output_type = v1::DATA_TYPE_INT8;
  options.symmetry = v1::SYMMETRY_ASYMMETRIC;
  options.report_error = true;
  SameInPieces(Tensor::Of<int32_t>(values, {3000}), options);
}

// The sizes that decide whether a request is cut include all of it, and little more.
TEST_F(SplitTest, TheSizeOfARequestCountsEveryTensor) {
  const Tensor floats{v1::DATA_TYPE_FLOAT, {6000}, std::string(24'000, '\0')};
  const Tensor codes{v1::DATA_TYPE_INT8, {6000}, std::string(6000, '\0')};
  const auto expect = [](const split::MessageSizes& sizes, uint64_t request, uint64_t response) {
    EXPECT_EQ(sizes.request, request + split::kEnvelopeBytes);
    EXPECT_EQ(sizes.response, response + split::kEnvelopeBytes);
  };
  expect(split::SizesOf(floats, floats, codes, QuantizeOptions()), 54'000, 6000);
  expect(split::SizesOf(floats, floats, {}, QuantizeOptions()), 48'000, 6000);
  expect(split::SizesOf(codes, floats, codes, DequantizeOptions()), 36'000, 24'000);
  expect(split::SizesOf(codes, floats, {}, DequantizeOptions()), 30'000, 24'000);
}

TEST_F(SplitTest, WhatIsWrongWithTheWholeIsToldBeforeAnyPieceIsSent) {
  FakeServer server(5000);
  const split::Sender sender = SenderTo(server, 5000);
  Tensor x{v1::DATA_TYPE_FLOAT, {3000}, std::string(12'000, '\0')};
  const Tensor scale = Tensor::Scalar<float>(1);
  const auto field = [](const absl::Status& status) {
    const auto violations = FieldViolations(status);
    return violations.empty() ? std::string() : violations[0].field;
  };
  x.shape = {2999};
  absl::Status status = split::Quantize(sender, x, scale, {}, {}).status();
  EXPECT_EQ(field(status), "x");
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("x has 12000 bytes, DATA_TYPE_FLOAT of shape [2999] takes 11996"));
  for (const int64_t length : {int64_t{-1}, int64_t{0}, std::numeric_limits<int64_t>::max()}) {
    x.shape = {length, 3000};
    EXPECT_EQ(field(split::Quantize(sender, x, scale, {}, {}).status()), "x");
    EXPECT_EQ(field(split::DynamicQuantize(sender, x, {}).status()), "x");
  }
  x.shape = {3000};
  const Tensor seven = Tensor::Of<float>(std::vector<float>(7, 1), {7});
  EXPECT_EQ(field(split::Quantize(sender, x, seven, {}, {}).status()), "axis");
  DynamicQuantizeOptions options;
  options.granularity.axis = 1;
  EXPECT_EQ(field(split::DynamicQuantize(sender, x, options).status()), "axis");
  options.granularity = {{}, -5, {}};
  EXPECT_EQ(field(split::DynamicQuantize(sender, x, options).status()), "block_size");
  options.granularity = {{}, 0, {10, 10}};
  EXPECT_EQ(field(split::DynamicQuantize(sender, x, options).status()), "block_shape");
  EXPECT_EQ(server.calls(), 0);
}

TEST_F(SplitTest, WrongOptionsAreNamedBeforeAnElementThatIsNotFinite) {
  std::vector<float> values(3000, std::numeric_limits<float>::quiet_NaN());
  const Tensor x = Tensor::Of<float>(values, {30, 100});
  FakeServer server(5000);
  for (const auto scale : {v1::DATA_TYPE_FLOAT, v1::DATA_TYPE_INT8, v1::DATA_TYPE_FLOAT8E8M0}) {
    DynamicQuantizeOptions options;
    options.scale_type = scale;
    options.granularity.axis = 1;
    v1::DynamicQuantizeRequest request = RequestOf(options);
    SetTensor(x, request.mutable_x());
    const absl::Status whole = all_.DynamicQuantize(request).status();
    EXPECT_EQ(split::DynamicQuantize(SenderTo(server, 5000), x, options).status().message(),
              whole.message());
  }
}

TEST_F(SplitTest, NothingIsStartedAfterAFailure) {
  FakeServer server(5000);
  split::Sender sender = SenderTo(server, 5000);
  std::atomic<int> calls{0};
  sender.quantize =
      [&](const v1::QuantizeRequest& request) -> absl::StatusOr<v1::QuantizeResponse> {
    if (++calls > 5) return absl::UnavailableError("gone");
    return server.Quantize(request);
  };
  const Tensor x{v1::DATA_TYPE_FLOAT, {100'000}, std::string(400'000, '\0')};
  const absl::Status status = split::Quantize(sender, x, Tensor::Scalar<float>(1), {}, {}).status();
  EXPECT_EQ(status, absl::UnavailableError("gone"));
  EXPECT_LT(calls, 10);  // of 443
}

TEST_F(SplitTest, AResponseThatIsNoneIsNotBelieved) {
  FakeServer server(5000);
  split::Sender sender = SenderTo(server, 5000);
  const Tensor x{v1::DATA_TYPE_FLOAT, {3000}, std::string(12'000, '\0')};
  sender.quantize = [](const v1::QuantizeRequest&) { return v1::QuantizeResponse(); };
  sender.dynamic_quantize = [&](const v1::DynamicQuantizeRequest& request) {
    auto response = server.DynamicQuantize(request);
    response->mutable_y_scale()->clear_raw_data();
    return response;
  };
  const Tensor one = Tensor::Scalar<float>(1);
  EXPECT_TRUE(absl::IsInternal(split::Quantize(sender, x, one, {}, {}).status()));
  EXPECT_TRUE(absl::IsInternal(split::DynamicQuantize(sender, x, {}).status()));
}

TEST_F(SplitTest, AMessageThatNothingFitsIntoIsSaid) {
  FakeServer server(100);
  const Tensor x{v1::DATA_TYPE_FLOAT, {3000}, std::string(12'000, '\0')};
  const absl::Status status = split::DynamicQuantize(SenderTo(server, 100), x, {}).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("100 bytes"));
  EXPECT_EQ(server.calls(), 0);
}

}  // namespace split_test
}  // namespace quantd::client
