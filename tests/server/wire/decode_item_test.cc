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

}  // namespace
}  // namespace quantd::wire
