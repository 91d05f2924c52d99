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

}  // namespace decode_test
}  // namespace quantd::wire
