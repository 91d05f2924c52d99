// Answers against the generated parser, and where their bytes lie.
#include "server/wire/answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "quantd/field_error.h"
#include "wire_testing.h"

namespace quantd::wire {
namespace {

TensorLayout Layout(DataType type, Shape shape) {
  int64_t elements = 1;
  for (int64_t dimension : shape) elements *= dimension;
  return {type, shape, elements, ByteSize(type, elements)};
}

// Bytes that tell their place.
void Fill(absl::Span<uint8_t> bytes, int start) {
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(start + i * 7);
}
std::string Filled(size_t size, int start) {
  std::string bytes(size, '\0');
  Fill(absl::MakeSpan(reinterpret_cast<uint8_t*>(bytes.data()), size), start);
  return bytes;
}
void FillAll(AnswerContents& contents) {
  Fill(contents.y, 1);
  Fill(contents.y_scale, 2);
  Fill(contents.y_zero_point, 3);
  Fill(contents.y_tensor_scale, 4);
}

void ExpectTensor(const v1::Tensor& tensor, const TensorLayout& layout, int start) {
  EXPECT_EQ(static_cast<int>(tensor.data_type()), static_cast<int>(layout.data_type));
  ASSERT_EQ(tensor.shape_size(), static_cast<int>(layout.shape.size()));
  for (int i = 0; i < tensor.shape_size(); ++i) EXPECT_EQ(tensor.shape(i), layout.shape[i]);
  ASSERT_EQ(tensor.contents_case(), v1::Tensor::kRawData);
  EXPECT_EQ(tensor.raw_data(), Filled(layout.bytes, start));
}

// What comes out is in one slice, whose bytes are what protobuf itself would write.
template <typename Message>
Message ParseCanonical(const grpc::ByteBuffer& buffer, uint64_t most) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(buffer.Dump(&slices).ok());
  EXPECT_EQ(slices.size(), 1u);
  const std::string bytes = ToString(buffer);
  EXPECT_LE(bytes.size(), most);
  Message message;
  EXPECT_TRUE(message.ParseFromString(bytes));
  EXPECT_EQ(message.ByteSizeLong(), bytes.size());
  return message;
}

TEST(AnswerTest, QuantizeOfEverySize) {
  for (int64_t size : {0, 1, 4, 23, 24, 100, 127, 128, 4095, 4096, 16384, 100'000, 3'000'000}) {
    for (uint64_t id : {uint64_t{0}, uint64_t{5}, ~uint64_t{0}}) {
      AnswerLayout layout;
      layout.y = Layout(DataType::kUint8, {size});
      Answer call(layout);
      Answer item(layout);
      FillAll(call.contents());
      FillAll(item.contents());
      const auto response =
          ParseCanonical<v1::QuantizeResponse>(std::move(call).Finish(), MaxEncodedBytes(layout));
      ExpectTensor(response.y(), layout.y, 1);
      EXPECT_FALSE(response.has_quantization_error());
      const auto item_response = ParseCanonical<v1::StreamResponse>(std::move(item).FinishItem(id),
                                                                    MaxEncodedBytes(layout));
      EXPECT_EQ(item_response.id(), id);
      ASSERT_EQ(item_response.response_case(), v1::StreamResponse::kQuantize);
      EXPECT_EQ(item_response.quantize().SerializeAsString(), response.SerializeAsString());
    }
  }
}

TEST(AnswerTest, DynamicQuantizeWithEveryTensor) {
  AnswerLayout layout;
  layout.method = Method::kDynamicQuantize;
  layout.y = Layout(DataType::kFloat4E2M1, {3, 0x4000, 1});
  layout.y_scale = Layout(DataType::kFloat8E4M3Fn, {3, 1024, 1});
  layout.y_zero_point = Layout(DataType::kFloat4E2M1, {3, 1024, 1});
  layout.y_tensor_scale = Layout(DataType::kFloat, {});
  layout.report_error = true;
  for (bool item : {false, true}) {
    Answer answer(layout);
    FillAll(answer.contents());
    answer.contents().error = {.sqnr_db = 30.5,
                               .mean_squared_error = 0,
                               .max_absolute_error = -0.0,
                               .saturated_elements = ~uint64_t{0},
                               .non_finite_elements = 300};
    v1::DynamicQuantizeResponse response;
    if (item) {
      response = ParseCanonical<v1::StreamResponse>(std::move(answer).FinishItem(9),
                                                    MaxEncodedBytes(layout))
                     .dynamic_quantize();
    } else {
      response = ParseCanonical<v1::DynamicQuantizeResponse>(std::move(answer).Finish(),
                                                             MaxEncodedBytes(layout));
    }
    ExpectTensor(response.y(), layout.y, 1);
    ExpectTensor(response.y_scale(), *layout.y_scale, 2);
    ExpectTensor(response.y_zero_point(), *layout.y_zero_point, 3);
    ExpectTensor(response.y_tensor_scale(), *layout.y_tensor_scale, 4);
    EXPECT_EQ(response.quantization_error().sqnr_db(), 30.5);
    EXPECT_EQ(response.quantization_error().mean_squared_error(), 0);
    EXPECT_TRUE(std::signbit(response.quantization_error().max_absolute_error()));
    EXPECT_EQ(response.quantization_error().saturated_elements(), ~uint64_t{0});
    EXPECT_EQ(response.quantization_error().non_finite_elements(), 300u);
  }
}

TEST(AnswerTest, AnErrorReportOfZerosIsThere) {
  AnswerLayout layout;
  layout.y = Layout(DataType::kInt8, {4});
  layout.report_error = true;
  Answer answer(layout);
  FillAll(answer.contents());
  const auto response =
      ParseCanonical<v1::QuantizeResponse>(std::move(answer).Finish(), MaxEncodedBytes(layout));
  EXPECT_TRUE(response.has_quantization_error());
}

// protobufjs up to 7 and ts-proto keep only the last piece of a message that comes in two: each
// tensor is one field, and small fields come before raw_data.
TEST(AnswerTest, EachTensorIsWrittenOnce) {
  AnswerLayout layout;
  layout.y = Layout(DataType::kUint8, {2, 3});
  Answer answer(layout);
  FillAll(answer.contents());
  const std::string tensor = std::string("\x08\x02\x12\x02\x02\x03\x1a\x06", 8) + Filled(6, 1);
  EXPECT_EQ(ToString(std::move(answer).Finish()), std::string("\x0a\x0e", 2) + tensor);
}

TEST(AnswerTest, KernelsWriteIntoTheSliceThatIsSent) {
  AnswerLayout layout;
  layout.method = Method::kDequantize;
  layout.y = Layout(DataType::kFloat, {1 << 20});
  Answer answer(layout);
  const uint8_t* y = answer.contents().y.data();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(y) % 64, 0u);
  Answer moved(std::move(answer));
  EXPECT_EQ(moved.contents().y.data(), y);
  const grpc::ByteBuffer buffer = std::move(moved).FinishItem(3);
  std::vector<grpc::Slice> slices;
  ASSERT_TRUE(buffer.Dump(&slices).ok());
  ASSERT_EQ(slices.size(), 1u);
  EXPECT_EQ(slices[0].end(), y + layout.y.bytes);
  EXPECT_GT(y, slices[0].begin());
  EXPECT_LT(y - slices[0].begin(), 64);
}

TEST(AnswerTest, SmallAnswersStayInPlaceToo) {
  AnswerLayout layout;
  layout.y = Layout(DataType::kUint8, {});
  Answer answer(layout);
  answer.contents().y[0] = 42;
  Answer moved(std::move(answer));
  v1::QuantizeResponse response;
  ASSERT_TRUE(response.ParseFromString(ToString(std::move(moved).Finish())));
  EXPECT_EQ(response.y().raw_data(), "*");
}

TEST(AnswerTest, AnAnswerThatIsNotFinishedIsFreed) {
  AnswerLayout layout;
  layout.y = Layout(DataType::kUint8, {1 << 20});
  for (int i = 0; i < 1000; ++i) Answer answer(layout);  // the sanitized build looks for leaks
}

TEST(AnswerTest, Values) {
  AnswerLayout layout;
  layout.method = Method::kDynamicQuantize;
  layout.encoding = Encoding::kValues;
  layout.y = Layout(DataType::kInt4, {3});
  layout.y_scale = Layout(DataType::kFloat, {1});
  layout.y_zero_point = Layout(DataType::kInt4, {1});
  layout.report_error = true;
  for (bool item : {false, true}) {
    Answer answer(layout);
    AnswerContents& contents = answer.contents();
    ASSERT_EQ(contents.y.size(), 2u);
    contents.y[0] = 0x7f;  // -1, 7
    contents.y[1] = 0x08;  // -8
    const float scale = 0.25f;
    memcpy(contents.y_scale.data(), &scale, 4);
    contents.y_zero_point[0] = 0x03;
    contents.error.sqnr_db = std::numeric_limits<double>::infinity();
    v1::DynamicQuantizeResponse response;
    if (item) {
      response = ParseCanonical<v1::StreamResponse>(std::move(answer).FinishItem(9),
                                                    MaxEncodedBytes(layout))
                     .dynamic_quantize();
    } else {
      response = ParseCanonical<v1::DynamicQuantizeResponse>(std::move(answer).Finish(),
                                                             MaxEncodedBytes(layout));
    }
    EXPECT_THAT(response.y().int_values().values(), testing::ElementsAre(-1, 7, -8));
    EXPECT_THAT(response.y().shape(), testing::ElementsAre(3));
    EXPECT_THAT(response.y_scale().float_values().values(), testing::ElementsAre(0.25f));
    EXPECT_THAT(response.y_zero_point().int_values().values(), testing::ElementsAre(3));
    EXPECT_TRUE(std::isinf(response.quantization_error().sqnr_db()));
    EXPECT_FALSE(response.has_y_tensor_scale());
  }
}

TEST(AnswerTest, SizesDoNotOverflow) {
  AnswerLayout layout;
  layout.y = {DataType::kFloat, {0}, 0, 0};
  layout.y_scale = {DataType::kFloat, {int64_t{1} << 61}, int64_t{1} << 61, uint64_t{1} << 63};
  layout.y_zero_point = {DataType::kInt32, {int64_t{1} << 61}, int64_t{1} << 61, uint64_t{1} << 63};
  EXPECT_EQ(MaxEncodedBytes(layout), ~uint64_t{0});
  layout.encoding = Encoding::kValues;
  EXPECT_EQ(MaxEncodedBytes(layout), ~uint64_t{0});
  EXPECT_EQ(AnswerMemoryBytes(layout), ~uint64_t{0});
}

TEST(EncodeItemErrorTest, NamesTheField) {
  const grpc::ByteBuffer buffer =
      EncodeItemError(12, FieldError("scale", "scale has 3 elements, x has 4 along axis 1"));
  v1::StreamResponse item;
  ASSERT_TRUE(item.ParseFromString(ToString(buffer)));
  EXPECT_EQ(item.id(), 12u);
  EXPECT_EQ(item.error().code(), 3);
  EXPECT_EQ(item.error().message(), "scale has 3 elements, x has 4 along axis 1");
  ASSERT_EQ(item.error().field_violations_size(), 1);
  EXPECT_EQ(item.error().field_violations(0).field(), "scale");
  EXPECT_EQ(item.error().field_violations(0).description(), item.error().message());
}

TEST(EncodeItemErrorTest, WithoutField) {
  v1::StreamResponse item;
  ASSERT_TRUE(item.ParseFromString(ToString(EncodeItemError(0, absl::UnavailableError("full")))));
  EXPECT_EQ(item.error().code(), 14);
  EXPECT_EQ(item.error().field_violations_size(), 0);
}

}  // namespace
}  // namespace quantd::wire
