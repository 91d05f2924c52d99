// What requests mean, and the errors of those that mean nothing.
#include "server/wire/decode.h"

#include <gmock/gmock.h>
#include <google/protobuf/message.h>
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include "request_testing.h"
#include "wire_testing.h"

namespace quantd::wire {
namespace decode_test {

using ::testing::ElementsAre;

// Keeps the message alive for the views of the request.
struct Decoded {
  Decoded(Method method, const std::string& bytes)
      : message(ToBytes(bytes)), request(DecodeRequest(method, message)) {}

  std::vector<uint8_t> message;
  absl::StatusOr<Request> request;
};
Decoded Decode(Method method, const std::string& bytes) { return Decoded(method, bytes); }
Decoded Decode(const v1::QuantizeRequest& request) {
  return Decode(Method::kQuantize, request.SerializeAsString());
}
const QuantizeParameters& Quantize(const Decoded& decoded) {
  return std::get<QuantizeParameters>(decoded.request->parameters);
}

TEST(DecodeTest, QuantizeWithEveryField) {
  v1::QuantizeRequest message = GoodQuantize();
  *message.mutable_zero_point() = MakeTensor(v1::DATA_TYPE_INT8, {}, "\x05");
  message.set_output_type(v1::DATA_TYPE_INT8);
  message.set_axis(-2);
  message.set_block_size(16);
  message.set_saturate(false);
  message.set_precision(v1::DATA_TYPE_FLOAT16);
  message.set_zero_point_order(v1::ZERO_POINT_ORDER_BEFORE_ROUNDING);
  message.set_report_error(true);
  message.set_output_encoding(v1::TENSOR_ENCODING_VALUES);
  message.add_block_shape(128);
  message.add_block_shape(-1);
  const Decoded decoded = Decode(message);
  ASSERT_TRUE(decoded.request.ok()) << decoded.request.status();
  const QuantizeParameters& parameters = Quantize(decoded);
  EXPECT_EQ(parameters.x.data_type, DataType::kFloat);
  EXPECT_THAT(parameters.x.shape, ElementsAre(2, 2));
  EXPECT_EQ(ToString(parameters.x.bytes), message.x().raw_data());
  EXPECT_EQ(ToString(parameters.scale.bytes), message.scale().raw_data());
  ASSERT_TRUE(parameters.zero_point.has_value());
  EXPECT_EQ(parameters.zero_point->data_type, DataType::kInt8);
  EXPECT_EQ(parameters.output_type, DataType::kInt8);
  EXPECT_EQ(parameters.granularity.axis, -2);
  EXPECT_EQ(parameters.granularity.block_size, 16);
  EXPECT_THAT(parameters.granularity.block_shape, ElementsAre(128, -1));
  EXPECT_FALSE(parameters.saturate);
  EXPECT_EQ(parameters.precision, DataType::kFloat16);
  EXPECT_EQ(parameters.zero_point_order, ZeroPointOrder::kBeforeRounding);
  EXPECT_TRUE(parameters.report_error);
  EXPECT_EQ(decoded.request->output_encoding, Encoding::kValues);
}

TEST(DecodeTest, WhatIsUnsetIsTheDefault) {
  const Decoded decoded = Decode(GoodQuantize());
  ASSERT_TRUE(decoded.request.ok()) << decoded.request.status();
  const QuantizeParameters& parameters = Quantize(decoded);
  EXPECT_FALSE(parameters.zero_point.has_value());
  EXPECT_EQ(parameters.output_type, DataType::kUnspecified);
  EXPECT_FALSE(parameters.granularity.axis.has_value());
  EXPECT_TRUE(parameters.saturate);
  EXPECT_EQ(parameters.zero_point_order, ZeroPointOrder::kAfterRounding);
  EXPECT_FALSE(parameters.report_error);
  EXPECT_EQ(decoded.request->output_encoding, Encoding::kRaw);
}

TEST(DecodeTest, DequantizeWithEveryField) {
  v1::DequantizeRequest message;
  *message.mutable_x() = MakeTensor(v1::DATA_TYPE_FLOAT4E2M1, {2}, "\x21");
  *message.mutable_scale() = MakeTensor(v1::DATA_TYPE_FLOAT8E4M3FN, {1}, "\x38");
  *message.mutable_zero_point() = MakeTensor(v1::DATA_TYPE_FLOAT4E2M1, {1}, std::string(1, '\0'));
  *message.mutable_tensor_scale() =
      MakeTensor(v1::DATA_TYPE_FLOAT, {}, Bytes(std::vector<float>{2}));
  message.set_output_type(v1::DATA_TYPE_BFLOAT16);
  message.set_axis(0);
  const Decoded decoded = Decode(Method::kDequantize, message.SerializeAsString());
  ASSERT_TRUE(decoded.request.ok()) << decoded.request.status();
  const auto& parameters = std::get<DequantizeParameters>(decoded.request->parameters);
  EXPECT_EQ(parameters.x.data_type, DataType::kFloat4E2M1);
  EXPECT_TRUE(parameters.zero_point.has_value());
  ASSERT_TRUE(parameters.tensor_scale.has_value());
  EXPECT_EQ(ToString(parameters.tensor_scale->bytes), message.tensor_scale().raw_data());
  EXPECT_EQ(parameters.output_type, DataType::kBfloat16);
  EXPECT_EQ(parameters.granularity.axis, 0);
}

TEST(DecodeTest, DynamicQuantizeWithEveryField) {
  v1::DynamicQuantizeRequest message;
  *message.mutable_x() = GoodQuantize().x();
  message.set_output_type(v1::DATA_TYPE_FLOAT8E5M2);
  message.set_saturate(false);
  message.set_scale_type(v1::DATA_TYPE_FLOAT8E8M0);
  message.set_symmetry(v1::SYMMETRY_SYMMETRIC);
  message.set_non_finite(v1::NON_FINITE_IGNORE);
  message.set_report_error(true);
  const Decoded decoded = Decode(Method::kDynamicQuantize, message.SerializeAsString());
  ASSERT_TRUE(decoded.request.ok()) << decoded.request.status();
  const auto& parameters = std::get<DynamicQuantizeParameters>(decoded.request->parameters);
  EXPECT_EQ(parameters.output_type, DataType::kFloat8E5M2);
  EXPECT_FALSE(parameters.saturate);
  EXPECT_EQ(parameters.scale_type, DataType::kFloat8E8M0);
  EXPECT_EQ(parameters.symmetry, Symmetry::kSymmetric);
  EXPECT_EQ(parameters.non_finite, NonFinite::kIgnore);
  EXPECT_TRUE(parameters.report_error);
}

TEST(DecodeTest, QuantizeEmbeddingsWithEveryField) {
  v1::QuantizeEmbeddingsRequest message;
  *message.mutable_x() = GoodQuantize().x();
  message.set_recipe(v1::EMBEDDING_RECIPE_BITS);
  *message.mutable_ranges() = GoodQuantize().x();
  message.set_output_type(v1::DATA_TYPE_INT8);
  message.set_dimensions(7);
  message.set_normalize(true);
  message.set_bit_order(v1::BIT_ORDER_LSB_FIRST);
  message.set_bit_threshold(v1::BIT_THRESHOLD_GREATER_OR_EQUAL);
  message.set_signed_bits(v1::SIGNED_BITS_TWOS_COMPLEMENT);
  message.set_non_finite(v1::NON_FINITE_IGNORE);
  message.set_report_error(true);
  Decoded decoded = Decode(Method::kQuantizeEmbeddings, message.SerializeAsString());
  ASSERT_TRUE(decoded.request.ok()) << decoded.request.status();
  const auto& parameters = std::get<QuantizeEmbeddingsParameters>(decoded.request->parameters);
  EXPECT_EQ(parameters.recipe, EmbeddingRecipe::kBits);
  ASSERT_TRUE(parameters.ranges.has_value());
  EXPECT_EQ(ToString(parameters.ranges->bytes), message.ranges().raw_data());
  EXPECT_EQ(parameters.output_type, DataType::kInt8);
  EXPECT_EQ(parameters.dimensions, 7);
  EXPECT_TRUE(parameters.normalize);
  EXPECT_EQ(parameters.bit_order, BitOrder::kLsbFirst);
  EXPECT_EQ(parameters.bit_threshold, BitThreshold::kGreaterOrEqual);
  EXPECT_EQ(parameters.signed_bits, SignedBits::kTwosComplement);
  EXPECT_EQ(parameters.non_finite, NonFinite::kIgnore);
  EXPECT_TRUE(parameters.report_error);
}

// Sets a field to something other than its default.
void Set(const google::protobuf::FieldDescriptor& field, google::protobuf::Message& message) {
  using google::protobuf::FieldDescriptor;
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return reflection.SetInt32(&message, &field, 7);
    case FieldDescriptor::CPPTYPE_INT64:
      return field.is_repeated() ? reflection.AddInt64(&message, &field, 7)
                                 : reflection.SetInt64(&message, &field, 7);
    case FieldDescriptor::CPPTYPE_BOOL:  // an optional one is true by default
      return reflection.SetBool(&message, &field, !field.has_presence());
    case FieldDescriptor::CPPTYPE_ENUM:
      return reflection.SetEnumValue(
          &message, &field,
          field.enum_type()->value(field.enum_type()->value_count() - 1)->number());
    case FieldDescriptor::CPPTYPE_STRING:
      return reflection.SetString(&message, &field, "region");
    case FieldDescriptor::CPPTYPE_MESSAGE: {
      google::protobuf::Message& sub = *reflection.MutableMessage(&message, &field);
      if (sub.GetDescriptor() == v1::Tensor::descriptor()) {
        sub.CopyFrom(MakeTensor(v1::DATA_TYPE_FLOAT, {1}, Bytes(std::vector<float>{7})));
      } else {
        Set(*sub.GetDescriptor()->field(0), sub);
      }
      return;
    }
    default:
      FAIL() << "no value for " << field.full_name();
  }
}

// A field that nothing reads would be dropped in silence.
TEST(DecodeTest, EveryFieldOfARequestIsRead) {
  v1::DynamicQuantizeRequest dynamic;
  *dynamic.mutable_x() = GoodQuantize().x();
  v1::QuantizeEmbeddingsRequest embeddings;
  *embeddings.mutable_x() = GoodQuantize().x();
  v1::DequantizeRequest dequantize;
  *dequantize.mutable_x() = MakeTensor(v1::DATA_TYPE_INT8, {1}, "\x05");
  *dequantize.mutable_scale() = GoodQuantize().scale();
  const v1::QuantizeRequest quantize = GoodQuantize();
  const std::array<const google::protobuf::Message*, kOperations> requests = {
      &quantize, &dequantize, &dynamic, &embeddings};
  for (size_t method = 0; method < requests.size(); ++method) {
    const Decoded without =
        Decode(static_cast<Method>(method), requests[method]->SerializeAsString());
    const google::protobuf::Descriptor& type = *requests[method]->GetDescriptor();
    for (int i = 0; i < type.field_count(); ++i) {
      const std::unique_ptr<google::protobuf::Message> message(requests[method]->New());
      message->CopyFrom(*requests[method]);
      Set(*type.field(i), *message);
      const Decoded with = Decode(static_cast<Method>(method), message->SerializeAsString());
      testing::TestPartResultArray differences;
      {
        testing::ScopedFakeTestPartResultReporter reporter(&differences);
        ExpectSame(with.request, without.request);
      }
      EXPECT_GT(differences.size(), 0) << type.field(i)->full_name();
    }
  }
}

TEST(DecodeTest, RawBytesAreViewsIntoTheMessage) {
  const v1::QuantizeRequest request = GoodQuantize();
  const std::string bytes = request.SerializeAsString();
  const Decoded decoded = Decode(Method::kQuantize, bytes);
  ASSERT_TRUE(decoded.request.ok());
  const uint8_t* const message = decoded.message.data();
  const auto expect_at = [&](const TensorView& tensor, const std::string& raw_data) {
    EXPECT_EQ(tensor.bytes.data(), message + bytes.find(raw_data));
    EXPECT_EQ(tensor.bytes.size(), raw_data.size());
  };
  expect_at(Quantize(decoded).x, request.x().raw_data());
  expect_at(Quantize(decoded).scale, request.scale().raw_data());
}

TEST(DecodeTest, ValuesBecomePackedBytes) {
  v1::QuantizeRequest message = GoodQuantize();
  message.mutable_x()->mutable_float_values()->mutable_values()->Add(7.f);
  for (float value : {1.f, -2.f, 0.25f})
    message.mutable_x()->mutable_float_values()->add_values(value);
  v1::Tensor& zero_point = *message.mutable_zero_point();
  zero_point.set_data_type(v1::DATA_TYPE_INT4);
  zero_point.add_shape(3);
  for (int64_t value : {-8, 7, -1}) zero_point.mutable_int_values()->add_values(value);
  const Decoded decoded = Decode(message);
  ASSERT_TRUE(decoded.request.ok()) << decoded.request.status();
  EXPECT_EQ(ToString(Quantize(decoded).x.bytes), Bytes(std::vector<float>{7, 1, -2, 0.25f}));
  EXPECT_EQ(ToString(Quantize(decoded).zero_point->bytes), "\x78\x0f");
}

TEST(DecodeTest, ManyIntegerValuesArePackedInSteps) {
  v1::DequantizeRequest message;
  *message.mutable_scale() = GoodQuantize().scale();
  v1::Tensor& x = *message.mutable_x();
  x.set_data_type(v1::DATA_TYPE_UINT2);
  x.add_shape(10'001);
  std::string packed(2501, '\0');
  for (int i = 0; i < 10'001; ++i) {
    x.mutable_int_values()->add_values(i * 7 % 4);
    packed[i / 4] = static_cast<char>(packed[i / 4] | (i * 7 % 4) << (i % 4 * 2));
  }
  const Decoded decoded = Decode(Method::kDequantize, message.SerializeAsString());
  ASSERT_TRUE(decoded.request.ok()) << decoded.request.status();
  EXPECT_EQ(ToString(std::get<DequantizeParameters>(decoded.request->parameters).x.bytes), packed);

  x.mutable_int_values()->set_values(9'000, 4);
  ExpectError(Decode(Method::kDequantize, message.SerializeAsString()).request, "x.int_values",
              "x.int_values[9000] is 4, UINT2 holds 0 to 3");
  x.mutable_int_values()->set_values(9'000, int64_t{1} << 40);
  ExpectError(Decode(Method::kDequantize, message.SerializeAsString()).request, "x.int_values",
              "x.int_values[9000] is 1099511627776, UINT2 holds 0 to 3");
}

TEST(DecodeTest, OfTwoContentsTheLastCounts) {
  v1::QuantizeRequest first = GoodQuantize();
  v1::QuantizeRequest second;
  for (float value : {9.f, 8.f}) second.mutable_x()->mutable_float_values()->add_values(value);
  v1::QuantizeRequest third;
  third.mutable_x()->set_raw_data(std::string(16, 'z'));
  // float_values alone, because raw_data came before; two values do not fit [2, 2].
  ExpectError(
      Decode(Method::kQuantize, first.SerializeAsString() + second.SerializeAsString()).request,
      "x.float_values", "x.float_values has 2 values, x.shape [2, 2] has 4 elements");
  // Values are merged with values.
  const std::string twice = second.SerializeAsString() + second.SerializeAsString();
  const Decoded values = Decode(Method::kQuantize, first.SerializeAsString() + twice);
  ASSERT_TRUE(values.request.ok()) << values.request.status();
  EXPECT_EQ(ToString(Quantize(values).x.bytes), Bytes(std::vector<float>{9, 8, 9, 8}));
  const Decoded raw =
      Decode(Method::kQuantize, first.SerializeAsString() + twice + third.SerializeAsString());
  ASSERT_TRUE(raw.request.ok()) << raw.request.status();
  EXPECT_EQ(ToString(Quantize(raw).x.bytes), std::string(16, 'z'));
}

TEST(DecodeTest, MissingFieldsAreNamed) {
  ExpectError(Decode(Method::kQuantize, "").request, "x", "x is required");
  ExpectError(Decode(Method::kDynamicQuantize, "").request, "x", "x is required");
  v1::QuantizeRequest message = GoodQuantize();
  message.clear_scale();
  ExpectError(Decode(message).request, "scale", "scale is required");
  message = GoodQuantize();
  message.mutable_scale()->clear_data_type();
  ExpectError(Decode(message).request, "scale.data_type", "scale.data_type is required");
}

TEST(DecodeTest, UnknownEnumNumbersAreNamed) {
  struct Case {
    const char* field;
    const char* text;
    void (*change)(v1::QuantizeRequest&);
  };
  const Case cases[] = {
      {"x.data_type", "x.data_type is 99",
       [](auto& r) { r.mutable_x()->set_data_type(static_cast<v1::DataType>(99)); }},
      {"scale.data_type", "scale.data_type is 7",  // ONNX has it (INT64), quantd does not
       [](auto& r) { r.mutable_scale()->set_data_type(static_cast<v1::DataType>(7)); }},
      {"output_type", "output_type is -1",
       [](auto& r) { r.set_output_type(static_cast<v1::DataType>(-1)); }},
      {"precision", "precision is 1000",
       [](auto& r) { r.set_precision(static_cast<v1::DataType>(1000)); }},
      {"zero_point_order", "zero_point_order is 3",
       [](auto& r) { r.set_zero_point_order(static_cast<v1::ZeroPointOrder>(3)); }},
      {"output_encoding", "output_encoding is 17",
       [](auto& r) { r.set_output_encoding(static_cast<v1::TensorEncoding>(17)); }},
  };
  for (const Case& c : cases) {
    v1::QuantizeRequest message = GoodQuantize();
    c.change(message);
    ExpectError(Decode(message).request, c.field, c.text);
  }
  v1::DynamicQuantizeRequest dynamic;
  *dynamic.mutable_x() = GoodQuantize().x();
  dynamic.set_symmetry(static_cast<v1::Symmetry>(5));
  ExpectError(Decode(Method::kDynamicQuantize, dynamic.SerializeAsString()).request, "symmetry",
              "symmetry is 5");
  dynamic.clear_symmetry();
  dynamic.set_non_finite(static_cast<v1::NonFinite>(-3));
  ExpectError(Decode(Method::kDynamicQuantize, dynamic.SerializeAsString()).request, "non_finite",
              "non_finite is -3");
}

TEST(DecodeTest, ValuesOfTheWrongKindAreRefused) {
  v1::QuantizeRequest message = GoodQuantize();
  message.mutable_x()->mutable_int_values()->add_values(1);
  ExpectError(Decode(message).request, "x.int_values", "x.int_values can't hold the FLOAT");
  message = GoodQuantize();
  message.mutable_zero_point()->set_data_type(v1::DATA_TYPE_INT8);
  message.mutable_zero_point()->mutable_float_values()->add_values(1);
  ExpectError(Decode(message).request, "zero_point.float_values",
              "zero_point.float_values can't hold the INT8");
}

TEST(DecodeTest, ValuesThatDoNotFitTheShapeAreRefused) {
  v1::QuantizeRequest message = GoodQuantize();
  // Three and four 4-bit values have the same bytes, and are not the same tensor.
  v1::Tensor& zero_point = *message.mutable_zero_point();
  zero_point.set_data_type(v1::DATA_TYPE_UINT4);
  zero_point.add_shape(4);
  for (int64_t value : {1, 2, 3}) zero_point.mutable_int_values()->add_values(value);
  ExpectError(Decode(message).request, "zero_point.int_values",
              "zero_point.int_values has 3 values, zero_point.shape [4] has 4 elements");
  zero_point.set_shape(0, -4);
  ExpectError(Decode(message).request, "zero_point.shape", "");
}

TEST(DecodeTest, TooManyDimensionsAreCounted) {
  v1::QuantizeRequest message = GoodQuantize();
  for (int i = 2; i < 64; ++i) message.mutable_x()->add_shape(1);
  for (int i = 0; i < 64; ++i) message.add_block_shape(1);
  EXPECT_TRUE(Decode(message).request.ok()) << "64 are none too many";
  message = GoodQuantize();
  for (int i = 0; i < 1'000'000; ++i) message.mutable_x()->add_shape(1);
  ExpectError(Decode(message).request, "x.shape", "x.shape has 1000002 dimensions, at most 64");
  message = GoodQuantize();
  for (int i = 0; i < 65; ++i) message.add_block_shape(1);
  ExpectError(Decode(message).request, "block_shape", "block_shape has 65 dimensions");
}

TEST(DecodeTest, GarbageIsRefused) {
  for (const std::string& bytes : {std::string("\xff"), std::string("\x0a\x05\x08"),
                                   std::string("\x0a\x02\x1a\x05"), std::string(1, '\0')}) {
    ExpectError(Decode(Method::kQuantize, bytes).request, "", "quantd.v1.QuantizeRequest");
  }
}

}  // namespace decode_test
}  // namespace quantd::wire
