// Requests whose tensors are in shared memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "request_testing.h"
#include "server/wire/decode.h"
#include "wire_testing.h"

namespace quantd::wire {
namespace shared_memory_test {

// Without a view of the message: names must be copies.
absl::StatusOr<Request> Decode(const v1::QuantizeRequest& message) {
  return DecodeRequest(Method::kQuantize, ToBytes(message.SerializeAsString()));
}

TEST(SharedMemoryTest, NamesOffsetsAndSizes) {
  v1::QuantizeRequest message = GoodQuantize();
  for (v1::Tensor* tensor : {message.mutable_x(), message.mutable_scale()}) {
    tensor->mutable_shared_memory()->set_region("r");
    tensor->mutable_shared_memory()->set_offset(7);
  }
  message.mutable_x()->mutable_shared_memory()->set_byte_size(16);
  message.mutable_scale()->mutable_shared_memory()->set_byte_size(4);
  message.mutable_output()->set_region("y");
  message.mutable_output()->set_offset(UINT64_MAX);
  message.mutable_output()->set_byte_size(3);
  absl::StatusOr<Request> decoded = Decode(message);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  Request& request = *decoded;
  const auto& parameters = std::get<QuantizeParameters>(request.parameters);
  ASSERT_EQ(request.shared.size(), 2);
  EXPECT_TRUE(request.x_is_shared());
  EXPECT_EQ(request.shared[0].field, TensorField::kX);
  EXPECT_EQ(request.shared[0].reference.region, "r");
  EXPECT_EQ(request.shared[0].reference.offset, 7);
  EXPECT_EQ(request.shared[0].reference.byte_size, 16);
  EXPECT_EQ(request.shared[1].field, TensorField::kScale);
  EXPECT_EQ(request.shared[1].reference.byte_size, 4);
  EXPECT_EQ(&TensorOf(request, TensorField::kX), &parameters.x);
  EXPECT_EQ(&TensorOf(request, TensorField::kScale), &parameters.scale);
  EXPECT_EQ(parameters.x.bytes.size(), 0);
  ASSERT_TRUE(request.output.has_value());
  EXPECT_EQ(request.output->region, "y");
  EXPECT_EQ(request.output->offset, UINT64_MAX);
  EXPECT_EQ(request.output->byte_size, 3);
}

TEST(SharedMemoryTest, SizesThatAreNotTheTensors) {
  v1::QuantizeRequest message = GoodQuantize();
  message.mutable_x()->mutable_shared_memory()->set_region("r");
  message.mutable_x()->mutable_shared_memory()->set_byte_size(15);
  ExpectError(Decode(message), "x.shared_memory.byte_size",
              "x.shared_memory.byte_size is 15, FLOAT of shape [2, 2] takes 16");
  message.mutable_x()->set_shape(0, -2);
  ExpectError(Decode(message), "x.shape", "");
  message = GoodQuantize();
  message.mutable_output()->set_region("y");
  message.set_output_encoding(v1::TENSOR_ENCODING_VALUES);
  ExpectError(Decode(message), "output_encoding", "VALUES");
}

}  // namespace shared_memory_test
}  // namespace quantd::wire
