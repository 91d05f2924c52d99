// What requests mean, and the errors of those that mean nothing.
#include "server/wire/decode.h"

#include <google/protobuf/message.h>
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "request_testing.h"
#include "wire_testing.h"

namespace quantd::wire {
namespace decode_test {

// The message is gone afterwards, so the bytes of raw_data must not be read.
absl::StatusOr<Request> Decode(Method method, const google::protobuf::Message& message) {
  return DecodeRequest(method, ToBytes(message.SerializeAsString()));
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
TEST(DecodeRequestTest, EveryFieldOfARequestIsRead) {
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
    const std::vector<uint8_t> plain = ToBytes(requests[method]->SerializeAsString());
    const absl::StatusOr<Request> without = DecodeRequest(static_cast<Method>(method), plain);
    const google::protobuf::Descriptor& type = *requests[method]->GetDescriptor();
    for (int i = 0; i < type.field_count(); ++i) {
      const std::unique_ptr<google::protobuf::Message> message(requests[method]->New());
      message->CopyFrom(*requests[method]);
      Set(*type.field(i), *message);
      const std::vector<uint8_t> changed = ToBytes(message->SerializeAsString());
      const absl::StatusOr<Request> with = DecodeRequest(static_cast<Method>(method), changed);
      testing::TestPartResultArray differences;
      {
        testing::ScopedFakeTestPartResultReporter reporter(&differences);
        ExpectSame(with, without);
      }
      EXPECT_GT(differences.size(), 0) << type.field(i)->full_name();
    }
  }
}

TEST(DecodeRequestTest, ManyIntegerValuesArePackedInSteps) {
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
  const absl::StatusOr<Request> decoded = Decode(Method::kDequantize, message);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(ToString(std::get<DequantizeParameters>(decoded->parameters).x.bytes), packed);
  for (const int64_t value : {int64_t{4}, int64_t{1} << 40}) {
    x.mutable_int_values()->set_values(9'000, value);
    ExpectError(Decode(Method::kDequantize, message), "x.int_values",
                absl::StrCat("x.int_values[9000] is ", value, ", UINT2 holds 0 to 3"));
  }
}

TEST(DecodeRequestTest, AnErrorNamesTheFieldAndTheNumbers) {
  struct Row {
    const char* field;
    const char* words;
    void (*spoil)(v1::QuantizeRequest&);
  };
  const Row rows[] = {
      {"x", "x is required", [](auto& r) { r.clear_x(); }},
      {"scale", "scale is required", [](auto& r) { r.clear_scale(); }},
      {"scale.data_type", "is required", [](auto& r) { r.mutable_scale()->clear_data_type(); }},
      {"x.data_type", " is 99",
       [](auto& r) { r.mutable_x()->set_data_type(static_cast<v1::DataType>(99)); }},
      {"scale.data_type", " is 7",  // ONNX has it (INT64), quantd does not
       [](auto& r) { r.mutable_scale()->set_data_type(static_cast<v1::DataType>(7)); }},
      {"output_type", " is -1", [](auto& r) { r.set_output_type(static_cast<v1::DataType>(-1)); }},
      {"precision", " is 1000", [](auto& r) { r.set_precision(static_cast<v1::DataType>(1000)); }},
      {"zero_point_order", " is 3",
       [](auto& r) { r.set_zero_point_order(static_cast<v1::ZeroPointOrder>(3)); }},
      {"output_encoding", " is 17",
       [](auto& r) { r.set_output_encoding(static_cast<v1::TensorEncoding>(17)); }},
      {"x.int_values", "FLOAT",
       [](auto& r) { r.mutable_x()->mutable_int_values()->add_values(1); }},
      {"zero_point.float_values", "INT8",
       [](auto& r) {
         r.mutable_zero_point()->set_data_type(v1::DATA_TYPE_INT8);
         r.mutable_zero_point()->mutable_float_values()->add_values(1);
       }},
      {"zero_point.int_values", "has 3 values, zero_point.shape [4] has 4 elements",
       [](auto& r) {  // three and four 4-bit values have the same bytes
         r.mutable_zero_point()->set_data_type(v1::DATA_TYPE_UINT4);
         r.mutable_zero_point()->add_shape(4);
         for (int64_t v : {1, 2, 3}) r.mutable_zero_point()->mutable_int_values()->add_values(v);
       }},
      {"zero_point.shape", "-4",
       [](auto& r) {
         r.mutable_zero_point()->set_data_type(v1::DATA_TYPE_UINT4);
         r.mutable_zero_point()->add_shape(-4);
         r.mutable_zero_point()->mutable_int_values();
       }},
      {"x.shape", "65 dimensions, at most 64",
       [](auto& r) { r.mutable_x()->mutable_shape()->Resize(65, 1); }},
      {"x.shape", "1000000 dimensions, at most 64",
       [](auto& r) { r.mutable_x()->mutable_shape()->Resize(1'000'000, 1); }},
      {"block_shape", "65 dimensions", [](auto& r) { r.mutable_block_shape()->Resize(65, 1); }},
      {"x.shared_memory.byte_size", " is 15, FLOAT of shape [2, 2] takes 16",
       [](auto& r) { r.mutable_x()->mutable_shared_memory()->set_byte_size(15); }},
      {"x.shape", "-2",
       [](auto& r) {
         r.mutable_x()->mutable_shared_memory()->set_byte_size(16);
         r.mutable_x()->set_shape(0, -2);
       }},
      {"output_encoding", "VALUES",
       [](auto& r) {
         r.mutable_output()->set_region("y");
         r.set_output_encoding(v1::TENSOR_ENCODING_VALUES);
       }},
  };
  for (const Row& row : rows) {
    v1::QuantizeRequest message = GoodQuantize();
    row.spoil(message);
    ExpectError(Decode(Method::kQuantize, message), row.field, row.words);
  }
  v1::QuantizeRequest most = GoodQuantize();
  most.mutable_x()->mutable_shape()->Resize(64, 1);
  most.mutable_block_shape()->Resize(64, 1);
  EXPECT_TRUE(Decode(Method::kQuantize, most).ok());

  v1::DynamicQuantizeRequest dynamic;
  ExpectError(Decode(Method::kDynamicQuantize, dynamic), "x", "x is required");
  *dynamic.mutable_x() = GoodQuantize().x();
  dynamic.set_symmetry(static_cast<v1::Symmetry>(5));
  ExpectError(Decode(Method::kDynamicQuantize, dynamic), "symmetry", "symmetry is 5");
  dynamic.clear_symmetry();
  dynamic.set_non_finite(static_cast<v1::NonFinite>(-3));
  ExpectError(Decode(Method::kDynamicQuantize, dynamic), "non_finite", "non_finite is -3");
}

TEST(DecodeRequestTest, SharedTensorsHaveTheirPlaces) {
  v1::QuantizeRequest message = GoodQuantize();
  const auto place = [](const char* region, uint64_t offset, uint64_t byte_size) {
    v1::SharedMemoryReference reference;
    reference.set_region(region);
    reference.set_offset(offset);
    reference.set_byte_size(byte_size);
    return reference;
  };
  *message.mutable_x()->mutable_shared_memory() = place("r", 7, 16);
  *message.mutable_scale()->mutable_shared_memory() = place("r", 8, 4);
  *message.mutable_output() = place("y", UINT64_MAX, 3);
  absl::StatusOr<Request> decoded = Decode(Method::kQuantize, message);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  const auto& parameters = std::get<QuantizeParameters>(decoded->parameters);
  ASSERT_EQ(decoded->shared.size(), 2);
  EXPECT_TRUE(decoded->x_is_shared());
  EXPECT_EQ(decoded->shared[0].field, TensorField::kX);
  EXPECT_EQ(decoded->shared[1].field, TensorField::kScale);
  ExpectSame(decoded->shared[0].reference, {"r", 7, 16});
  ExpectSame(decoded->shared[1].reference, {"r", 8, 4});
  EXPECT_EQ(&TensorOf(*decoded, TensorField::kX), &parameters.x);
  EXPECT_EQ(&TensorOf(*decoded, TensorField::kScale), &parameters.scale);
  EXPECT_EQ(parameters.x.bytes.size(), 0);
  ASSERT_TRUE(decoded->output.has_value());
  ExpectSame(*decoded->output, {"y", UINT64_MAX, 3});

  message.mutable_x()->set_raw_data(std::string(16, 0));
  decoded = Decode(Method::kQuantize, message);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_FALSE(decoded->x_is_shared());  // but the scale is
}

TEST(DecodeRequestTest, TheIdOfABadItemIsKnown) {
  v1::StreamRequest empty, lacking;
  empty.set_id(77);
  lacking.set_id(77);
  lacking.mutable_dequantize();
  struct Row {
    std::string bytes;
    const char* field;
    const char* words;
  };
  for (const Row& row : {Row{empty.SerializeAsString(), "request", "none of quantize, "},
                         Row{lacking.SerializeAsString(), "x", "x is required"},
                         // Broken before the id, and cut off behind it.
                         Row{{"\x12\x01\xff\x08\x4d", 5}, "", "quantd.v1.StreamRequest"},
                         Row{{"\x08\x4d\x12\x7f", 4}, "", "quantd.v1.StreamRequest"}}) {
    const std::vector<uint8_t> bytes = ToBytes(row.bytes);
    EXPECT_EQ(RestOf(Method::kStream, bytes).id, 77u);
    ExpectError(DecodeRequest(Method::kStream, bytes), row.field, row.words);
  }
  EXPECT_EQ(RestOf(Method::kStream, {}).id, 0u);
}

}  // namespace decode_test
}  // namespace quantd::wire
