// The items of a stream: their requests, and what is known of a bad one.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "request_testing.h"
#include "server/wire/decode.h"
#include "wire_testing.h"

namespace quantd::wire {
namespace {

// Good as long as nobody asks for the bytes of its tensors.
StreamItem DecodeItem(const std::string& bytes) { return DecodeStreamItem(ToBytes(bytes)); }

TEST(DecodeStreamItemTest, Good) {
  v1::StreamRequest message;
  message.set_id(uint64_t{1} << 63);
  *message.mutable_quantize() = GoodQuantize();
  const StreamItem item = DecodeItem(message.SerializeAsString());
  EXPECT_EQ(item.id, uint64_t{1} << 63);
  EXPECT_EQ(item.method, Method::kQuantize);
  EXPECT_TRUE(item.request.ok()) << item.request.status();
}

TEST(DecodeStreamItemTest, TheIdOfABadItemIsKnown) {
  v1::StreamRequest message;
  message.set_id(77);
  StreamItem item = DecodeItem(message.SerializeAsString());
  EXPECT_EQ(item.id, 77u);
  EXPECT_FALSE(item.method.has_value());
  ExpectError(item.request, "request",
              "none of quantize, dequantize, dynamic_quantize and quantize_embeddings is set");

  message.mutable_dequantize();
  item = DecodeItem(message.SerializeAsString());
  EXPECT_EQ(item.id, 77u);
  EXPECT_EQ(item.method, Method::kDequantize);
  ExpectError(item.request, "x", "x is required");

  // A broken request before the id, and one that is cut off behind it.
  item = DecodeItem(std::string("\x12\x01\xff\x08\x4d", 5));
  EXPECT_EQ(item.id, 77u);
  ExpectError(item.request, "", "quantd.v1.StreamRequest");
  item = DecodeItem(std::string("\x08\x4d\x12\x7f", 4));
  EXPECT_EQ(item.id, 77u);
  ExpectError(item.request, "", "quantd.v1.StreamRequest");
}

// The oneof: of two operations the later one counts, and none of the earlier one's tensors.
TEST(DecodeStreamItemTest, OfTwoOperationsTheLastCounts) {
  const std::string quantize =
      MakeItem(1, Method::kQuantize, GoodQuantize().SerializeAsString()).SerializeAsString();
  v1::DequantizeRequest request;
  request.mutable_x()->set_data_type(v1::DATA_TYPE_UINT8);
  request.mutable_x()->add_shape(0);
  *request.mutable_scale() = GoodQuantize().scale();
  const std::string dequantize =
      MakeItem(2, Method::kDequantize, request.SerializeAsString()).SerializeAsString();

  const std::vector<uint8_t> message = ToBytes(quantize + dequantize);
  const StreamItem item = DecodeStreamItem(message);
  EXPECT_EQ(item.id, 2u);
  EXPECT_EQ(item.method, Method::kDequantize);
  ASSERT_TRUE(item.request.ok()) << item.request.status();
  const auto& parameters = std::get<DequantizeParameters>(item.request->parameters);
  EXPECT_EQ(parameters.x.bytes.size(), 0u);
  EXPECT_EQ(ToString(parameters.scale.bytes), request.scale().raw_data());

  // Back to the first kind, this time without raw_data.
  v1::QuantizeRequest empty;
  empty.mutable_x()->set_data_type(v1::DATA_TYPE_FLOAT);
  *empty.mutable_scale() = GoodQuantize().scale();
  const std::vector<uint8_t> again =
      ToBytes(quantize + dequantize +
              MakeItem(3, Method::kQuantize, empty.SerializeAsString()).SerializeAsString());
  const StreamItem third = DecodeStreamItem(again);
  ASSERT_TRUE(third.request.ok()) << third.request.status();
  EXPECT_EQ(std::get<QuantizeParameters>(third.request->parameters).x.bytes.size(), 0u);
}

}  // namespace
}  // namespace quantd::wire
