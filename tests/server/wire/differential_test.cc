// Decoding against the generated parser: both accept the same messages, with the same meaning.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "many_messages.h"
#include "quantd/v1/quantization.pb.h"
#include "request_testing.h"
#include "server/wire/decode.h"
#include "wire_testing.h"

namespace quantd::wire {
namespace differential_test {

constexpr int kMessages = 120'000;

// Compare the request with the message, field by field.

void ExpectTensor(const TensorView& view, const v1::Tensor& tensor) {
  ASSERT_EQ(static_cast<int>(view.data_type), static_cast<int>(tensor.data_type()));
  ASSERT_EQ(std::vector<int64_t>(view.shape.begin(), view.shape.end()),
            std::vector<int64_t>(tensor.shape().begin(), tensor.shape().end()));
  if (!tensor.has_raw_data()) return;
  ASSERT_EQ(ToString(view.bytes), tensor.raw_data());
}
void ExpectTensor(const std::optional<TensorView>& view, bool has, const v1::Tensor& tensor) {
  ASSERT_EQ(view.has_value(), has);
  if (has) ExpectTensor(*view, tensor);
}
void ExpectTensors(const QuantizeParameters& a, const v1::QuantizeRequest& message) {
  ExpectTensor(a.x, message.x());
  ExpectTensor(a.scale, message.scale());
  ExpectTensor(a.zero_point, message.has_zero_point(), message.zero_point());
}
void ExpectTensors(const DequantizeParameters& a, const v1::DequantizeRequest& message) {
  ExpectTensor(a.x, message.x());
  ExpectTensor(a.scale, message.scale());
  ExpectTensor(a.zero_point, message.has_zero_point(), message.zero_point());
  ExpectTensor(a.tensor_scale, message.has_tensor_scale(), message.tensor_scale());
}
void ExpectTensors(const DynamicQuantizeParameters& a, const v1::DynamicQuantizeRequest& message) {
  ExpectTensor(a.x, message.x());
}
void ExpectTensors(const QuantizeEmbeddingsParameters& a,
                   const v1::QuantizeEmbeddingsRequest& message) {
  ExpectTensor(a.x, message.x());
  ExpectTensor(a.ranges, message.has_ranges(), message.ranges());
}

// `request`, decoded from arbitrary bytes, against what protobuf's parser made of them.
template <typename Parameters, typename Message>
void ExpectMeans(const absl::StatusOr<Request>& request, Method method, const Message& message) {
  const std::vector<uint8_t> canonical = ToBytes(message.SerializeAsString());
  ExpectSame(request, DecodeRequest(method, canonical));
  if (request.ok()) ExpectTensors(std::get<Parameters>(request->parameters), message);
}

template <typename Parameters, typename Message>
void TestRequests(Method method) {
  ForManyMessages(method, kMessages, [&](const std::string& text, bool& accepted) {
    Message message;
    accepted = message.ParseFromString(text);
    const std::vector<uint8_t> bytes = ToBytes(text);
    const absl::StatusOr<Request> request = DecodeRequest(method, bytes);
    if (accepted) {
      ExpectMeans<Parameters>(request, method, message);
      return;
    }
    ASSERT_EQ(request.status().code(), absl::StatusCode::kInvalidArgument);
    ASSERT_EQ(request.status().message(),
              "the message is truncated or not a quantd.v1." + Message::descriptor()->name());
  });
}

TEST(DifferentialTest, Quantize) {
  TestRequests<QuantizeParameters, v1::QuantizeRequest>(Method::kQuantize);
}
TEST(DifferentialTest, Dequantize) {
  TestRequests<DequantizeParameters, v1::DequantizeRequest>(Method::kDequantize);
}
TEST(DifferentialTest, DynamicQuantize) {
  TestRequests<DynamicQuantizeParameters, v1::DynamicQuantizeRequest>(Method::kDynamicQuantize);
}
TEST(DifferentialTest, QuantizeEmbeddings) {
  TestRequests<QuantizeEmbeddingsParameters, v1::QuantizeEmbeddingsRequest>(
      Method::kQuantizeEmbeddings);
}

TEST(DifferentialTest, StreamItems) {
  ForManyMessages(Method::kStream, kMessages, [](const std::string& text, bool& accepted) {
    v1::StreamRequest message;
    accepted = message.ParseFromString(text);
    const std::vector<uint8_t> bytes = ToBytes(text);
    const absl::StatusOr<Request> request = DecodeRequest(Method::kStream, bytes);
    if (!accepted) {
      ASSERT_EQ(request.status().code(), absl::StatusCode::kInvalidArgument);
      ASSERT_EQ(request.status().message(),
                "the message is truncated or not a quantd.v1.StreamRequest");
      return;
    }
    switch (message.request_case()) {
      case v1::StreamRequest::kQuantize:
        ExpectMeans<QuantizeParameters>(request, Method::kQuantize, message.quantize());
        break;
      case v1::StreamRequest::kDequantize:
        ExpectMeans<DequantizeParameters>(request, Method::kDequantize, message.dequantize());
        break;
      case v1::StreamRequest::kDynamicQuantize:
        ExpectMeans<DynamicQuantizeParameters>(request, Method::kDynamicQuantize,
                                               message.dynamic_quantize());
        break;
      case v1::StreamRequest::kQuantizeEmbeddings:
        ExpectMeans<QuantizeEmbeddingsParameters>(request, Method::kQuantizeEmbeddings,
                                                  message.quantize_embeddings());
        break;
      case v1::StreamRequest::REQUEST_NOT_SET:
        ASSERT_EQ(request.status().code(), absl::StatusCode::kInvalidArgument);
        break;
    }
  });
}

}  // namespace differential_test
}  // namespace quantd::wire
