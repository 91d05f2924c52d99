// x in a message that has not arrived completely: found where protobuf would find it, or not at
// all.
#include "server/wire/arriving.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>

#include "quantd/v1/quantization.pb.h"
#include "wire_testing.h"

namespace quantd::wire {
namespace {

BytesView View(const std::string& bytes) {
  return {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()};
}

v1::DynamicQuantizeRequest SampleRequest() {
  v1::DynamicQuantizeRequest request;
  request.mutable_x()->set_data_type(v1::DATA_TYPE_BFLOAT16);
  request.mutable_x()->add_shape(300);
  request.mutable_x()->set_raw_data(std::string(600, 'x'));
  request.set_output_type(v1::DATA_TYPE_INT8);
  return request;
}

std::string Part(const v1::DynamicQuantizeRequest& request) { return request.SerializeAsString(); }

// Where raw_data begins and ends in `message`. Whatever is found in its first `size` bytes must
// agree.
void ExpectFound(const std::string& message) {
  const size_t begin = message.find(std::string(600, 'x'));
  ASSERT_NE(begin, std::string::npos);
  for (size_t size = 0; size <= message.size(); ++size) {
    const std::optional<ArrivingTensor> x = FindArrivingX(View(message.substr(0, size)));
    EXPECT_EQ(x.has_value(), size >= begin && size < begin + 600) << size;
    if (!x.has_value()) continue;
    EXPECT_EQ(x->data_type, DataType::kBfloat16);
    EXPECT_EQ(x->begin, begin);
    EXPECT_EQ(x->bytes, 600);
  }
}

TEST(ArrivingX, IsFoundAsSoonAsItBegins) { ExpectFound(Part(SampleRequest())); }

TEST(ArrivingX, BehindOtherFields) {
  v1::DynamicQuantizeRequest x = SampleRequest(), others = SampleRequest();
  x.clear_output_type();
  others.clear_x();
  // A field of a later version comes first.
  ExpectFound("\xfa\x7f\x03new" + Part(others) + Part(x));
}

// The bytes behind x are those of another request, which has as many.
void ExpectEmptied(const v1::QuantizeRequest& request, const std::string& before,
                   const std::string& behind) {
  v1::QuantizeRequest x;
  *x.mutable_x() = request.x();
  const std::string message = before + x.SerializeAsString();
  const size_t begin = message.find(std::string(600, 'x'));
  for (const size_t size : {begin, begin + 1, begin + 599}) {
    const std::string so_far = message.substr(0, size);
    const std::optional<ArrivingTensor> arriving = FindArrivingX(View(so_far));
    ASSERT_TRUE(arriving.has_value());
    EXPECT_TRUE(arriving->is_last);
    EXPECT_EQ(arriving->end(), message.size());
    v1::QuantizeRequest wanted, emptied;
    ASSERT_TRUE(wanted.ParseFromString(message + behind));
    if (wanted.x().raw_data() == request.x().raw_data()) wanted.mutable_x()->set_raw_data("");
    ASSERT_TRUE(emptied.ParseFromString(WithoutElements(View(so_far), *arriving, behind)));
    EXPECT_EQ(emptied.DebugString(), wanted.DebugString());
  }
}

TEST(WithoutElements, IsTheSameRequest) {
  v1::QuantizeRequest request, others, earlier;
  *request.mutable_x() = SampleRequest().x();
  others.mutable_scale()->set_data_type(v1::DATA_TYPE_FLOAT);
  others.mutable_scale()->set_raw_data("1234");
  others.set_axis(-1);
  earlier.mutable_x()->add_shape(5);
  earlier.mutable_x()->mutable_float_values()->add_values(5);
  for (const std::string& some : {std::string(), others.SerializeAsString(),
                                  earlier.SerializeAsString(), std::string("\xfa\x7f\x03new")}) {
    for (const std::string& more :
         {std::string(), others.SerializeAsString(), earlier.SerializeAsString()}) {
      ExpectEmptied(request, some, more);
    }
  }
}

TEST(WithoutElements, XMayGoOn) {
  v1::QuantizeRequest request;
  *request.mutable_x() = SampleRequest().x();
  std::string tensor = request.x().SerializeAsString() + "\x12\x01\x07";  // a dimension more
  const std::string message = std::string("\x0a\xe4\x04") + tensor;
  ASSERT_EQ(tensor.size(), 0x4 << 7 | 0x64);
  v1::QuantizeRequest parsed;
  ASSERT_TRUE(parsed.ParseFromString(message));
  ASSERT_EQ(parsed.x().shape_size(), 2);
  const std::optional<ArrivingTensor> x = FindArrivingX(View(message).first(100));
  ASSERT_TRUE(x.has_value());
  EXPECT_FALSE(x->is_last);
}

std::string Scaled() {
  v1::QuantizeRequest request;
  request.mutable_scale()->set_data_type(v1::DATA_TYPE_FLOAT);
  request.mutable_scale()->set_raw_data("1234");
  return request.SerializeAsString();
}

// Decodes a request that ends with `behind`, before x has arrived.
absl::StatusOr<Request> DecodeEarly(const std::string& behind) {
  v1::QuantizeRequest request;
  *request.mutable_x() = SampleRequest().x();
  const std::string so_far = request.SerializeAsString().substr(0, 100);
  const std::optional<ArrivingTensor> x = FindArrivingX(View(so_far));
  EXPECT_TRUE(x.has_value());
  static auto* const kept = new std::string;  // the request views it
  *kept = WithoutElements(View(so_far), *x, behind);
  return DecodeWithoutElements(*x, *kept);
}

TEST(WithoutElements, IsDecoded) {
  absl::StatusOr<Request> request = DecodeEarly(Scaled());
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_TRUE(TensorOf(*request, TensorField::kX).bytes.empty());
  EXPECT_EQ(TensorOf(*request, TensorField::kX).shape, Shape({300}));
  EXPECT_EQ(TensorOf(*request, TensorField::kScale).bytes.size(), 4);
}

TEST(WithoutElements, IsNotDecodedIfItIsNotWholeWithX) {
  v1::QuantizeRequest another_x, values, shared, output, encoding, set;
  *another_x.mutable_x() = SampleRequest().x();
  values.mutable_scale()->mutable_float_values()->add_values(1);
  shared.mutable_scale()->mutable_shared_memory()->set_region("r");
  output.mutable_output()->set_region("r");
  encoding.set_output_encoding(v1::TENSOR_ENCODING_VALUES);
  set.set_parameters("set");
  for (const v1::QuantizeRequest& more : {another_x, values, shared, output, encoding, set}) {
    EXPECT_FALSE(DecodeEarly(Scaled() + more.SerializeAsString()).ok()) << more.ShortDebugString();
  }
  v1::QuantizeRequest other_type;
  other_type.mutable_x()->set_data_type(v1::DATA_TYPE_FLOAT);
  EXPECT_FALSE(DecodeEarly(Scaled() + other_type.SerializeAsString()).ok());
  EXPECT_FALSE(DecodeEarly("").ok());  // no scale
}

TEST(ArrivingX, NotBeforeItsType) {
  v1::DynamicQuantizeRequest request = SampleRequest();
  request.mutable_x()->clear_data_type();
  const std::string message = Part(request);
  for (size_t size = 0; size <= message.size(); ++size) {
    EXPECT_FALSE(FindArrivingX(View(message.substr(0, size))).has_value()) << size;
  }
}

TEST(ArrivingX, NotOfATypeThatThereIsNot) {
  v1::DynamicQuantizeRequest request = SampleRequest();
  request.mutable_x()->set_data_type(static_cast<v1::DataType>(1000));
  EXPECT_FALSE(FindArrivingX(View(Part(request).substr(0, 100))).has_value());
}

TEST(ArrivingX, NotInValues) {
  v1::DynamicQuantizeRequest request = SampleRequest();
  for (int i = 0; i < 200; ++i) request.mutable_x()->mutable_float_values()->add_values(i);
  EXPECT_FALSE(FindArrivingX(View(Part(request).substr(0, 100))).has_value());
}

// Lengths that no message has: none beyond protobuf's own limit is believed.
TEST(ArrivingX, NotOfAnImpossibleLength) {
  EXPECT_FALSE(FindArrivingX(View("\x0a\xff\xff\xff\xff\x0f\x08\x01\x1a\x04xx")).has_value());
  EXPECT_FALSE(FindArrivingX(View("\x0a\x40\x08\x01\x1a\xff\xff\xff\xff\x0f")).has_value());
}

}  // namespace
}  // namespace quantd::wire
