// The items of a stream: their requests, and what is known of a bad one.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "request_testing.h"
#include "server/wire/decode.h"
#include "wire_testing.h"

namespace quantd::wire {
namespace {

// Valid only until somebody reads the bytes of its tensors: the message is gone.
absl::StatusOr<Request> DecodeItem(const std::string& bytes) {
  return DecodeRequest(Method::kStream, ToBytes(bytes));
}

uint64_t IdOf(const std::string& bytes) { return RestOf(Method::kStream, ToBytes(bytes)).id; }

TEST(DecodeItemTest, Good) {
  v1::StreamRequest message;
  message.set_id(uint64_t{1} << 63);
  *message.mutable_quantize() = GoodQuantize();
  EXPECT_EQ(IdOf(message.SerializeAsString()), uint64_t{1} << 63);
  const absl::StatusOr<Request> request = DecodeItem(message.SerializeAsString());
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->method(), Method::kQuantize);
}

TEST(DecodeItemTest, TheIdOfABadItemIsKnown) {
  v1::StreamRequest message;
  message.set_id(77);
  EXPECT_EQ(IdOf(message.SerializeAsString()), 77u);
  ExpectError(DecodeItem(message.SerializeAsString()), "request",
              "none of quantize, dequantize, dynamic_quantize and quantize_embeddings is set");

  message.mutable_dequantize();
  EXPECT_EQ(IdOf(message.SerializeAsString()), 77u);
  ExpectError(DecodeItem(message.SerializeAsString()), "x", "x is required");

  // A broken request before the id, and one that is cut off behind it.
  for (const std::string& broken :
       {std::string("\x12\x01\xff\x08\x4d", 5), std::string("\x08\x4d\x12\x7f", 4)}) {
    EXPECT_EQ(IdOf(broken), 77u);
    ExpectError(DecodeItem(broken), "", "quantd.v1.StreamRequest");
  }
}

// The oneof: of two operations the last one counts, and no tensor of the first one remains.
TEST(DecodeItemTest, OfTwoOperationsTheLastCounts) {
  const std::string quantize =
      MakeItem(1, Method::kQuantize, GoodQuantize().SerializeAsString()).SerializeAsString();
  v1::DequantizeRequest request;
  request.mutable_x()->set_data_type(v1::DATA_TYPE_UINT8);
  request.mutable_x()->add_shape(0);
  *request.mutable_scale() = GoodQuantize().scale();
  const std::string dequantize =
      MakeItem(2, Method::kDequantize, request.SerializeAsString()).SerializeAsString();

  const std::vector<uint8_t> message = ToBytes(quantize + dequantize);
  EXPECT_EQ(RestOf(Method::kStream, message).id, 2u);
  const absl::StatusOr<Request> last = DecodeRequest(Method::kStream, message);
  ASSERT_TRUE(last.ok()) << last.status();
  const auto& parameters = std::get<DequantizeParameters>(last->parameters);
  EXPECT_EQ(parameters.x.bytes.size(), 0u);
  EXPECT_EQ(ToString(parameters.scale.bytes), request.scale().raw_data());

  // The first kind again, this time without raw_data.
  v1::QuantizeRequest empty;
  empty.mutable_x()->set_data_type(v1::DATA_TYPE_FLOAT);
  *empty.mutable_scale() = GoodQuantize().scale();
  const std::vector<uint8_t> again =
      ToBytes(quantize + dequantize +
              MakeItem(3, Method::kQuantize, empty.SerializeAsString()).SerializeAsString());
  const absl::StatusOr<Request> third = DecodeRequest(Method::kStream, again);
  ASSERT_TRUE(third.ok()) << third.status();
  EXPECT_EQ(std::get<QuantizeParameters>(third->parameters).x.bytes.size(), 0u);
}

}  // namespace
}  // namespace quantd::wire
