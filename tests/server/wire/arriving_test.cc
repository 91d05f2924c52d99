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

v1::DynamicQuantizeRequest Request() {
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

TEST(ArrivingX, IsFoundAsSoonAsItBegins) { ExpectFound(Part(Request())); }

TEST(ArrivingX, BehindOtherFields) {
  v1::DynamicQuantizeRequest x = Request(), others = Request();
  x.clear_output_type();
  others.clear_x();
  // A field of a later version comes first.
  ExpectFound("\xfa\x7f\x03new" + Part(others) + Part(x));
}

TEST(ArrivingX, NotBeforeItsType) {
  v1::DynamicQuantizeRequest request = Request();
  request.mutable_x()->clear_data_type();
  const std::string message = Part(request);
  for (size_t size = 0; size <= message.size(); ++size) {
    EXPECT_FALSE(FindArrivingX(View(message.substr(0, size))).has_value()) << size;
  }
}

TEST(ArrivingX, NotOfATypeThatThereIsNot) {
  v1::DynamicQuantizeRequest request = Request();
  request.mutable_x()->set_data_type(static_cast<v1::DataType>(1000));
  EXPECT_FALSE(FindArrivingX(View(Part(request).substr(0, 100))).has_value());
}

TEST(ArrivingX, NotInValues) {
  v1::DynamicQuantizeRequest request = Request();
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
