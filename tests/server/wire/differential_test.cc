// Decoding against the generated parser: what one accepts the other accepts, with the same meaning.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "many_messages.h"
#include "quantd/v1/quantization.pb.h"
#include "server/wire/decode.h"
#include "wire_testing.h"

namespace quantd::wire {
namespace {

constexpr int kMessages = 120'000;

// ---- equality of two requests: every field of parameters.h ----

void ExpectSame(const TensorView& a, const TensorView& b) {
  ASSERT_EQ(a.data_type, b.data_type);
  ASSERT_EQ(a.shape, b.shape);
  ASSERT_EQ(ToString(a.bytes), ToString(b.bytes));
}
void ExpectSame(const std::optional<TensorView>& a, const std::optional<TensorView>& b) {
  ASSERT_EQ(a.has_value(), b.has_value());
  if (a.has_value()) ExpectSame(*a, *b);
}
void ExpectSame(const Granularity& a, const Granularity& b) {
  ASSERT_EQ(a.axis, b.axis);
  ASSERT_EQ(a.block_size, b.block_size);
  ASSERT_EQ(a.block_shape, b.block_shape);
}
void ExpectSame(const QuantizeParameters& a, const QuantizeParameters& b) {
  const auto& [x, scale, zero_point, type, granularity, saturate, precision, order, report] = a;
  ExpectSame(x, b.x);
  ExpectSame(scale, b.scale);
  ExpectSame(zero_point, b.zero_point);
  ASSERT_EQ(type, b.output_type);
  ExpectSame(granularity, b.granularity);
  ASSERT_EQ(saturate, b.saturate);
  ASSERT_EQ(precision, b.precision);
  ASSERT_EQ(order, b.zero_point_order);
  ASSERT_EQ(report, b.report_error);
}
void ExpectSame(const DequantizeParameters& a, const DequantizeParameters& b) {
  const auto& [x, scale, zero_point, tensor_scale, type, granularity] = a;
  ExpectSame(x, b.x);
  ExpectSame(scale, b.scale);
  ExpectSame(zero_point, b.zero_point);
  ExpectSame(tensor_scale, b.tensor_scale);
  ASSERT_EQ(type, b.output_type);
  ExpectSame(granularity, b.granularity);
}
void ExpectSame(const DynamicQuantizeParameters& a, const DynamicQuantizeParameters& b) {
  const auto& [x, type, granularity, saturate, scale_type, symmetry, non_finite, report] = a;
  ExpectSame(x, b.x);
  ASSERT_EQ(type, b.output_type);
  ExpectSame(granularity, b.granularity);
  ASSERT_EQ(saturate, b.saturate);
  ASSERT_EQ(scale_type, b.scale_type);
  ASSERT_EQ(symmetry, b.symmetry);
  ASSERT_EQ(non_finite, b.non_finite);
  ASSERT_EQ(report, b.report_error);
}
void ExpectSame(const QuantizeEmbeddingsParameters& a, const QuantizeEmbeddingsParameters& b) {
  const auto& [x, recipe, ranges, type, dimensions, normalize, order, threshold, signed_bits,
               non_finite, report] = a;
  ExpectSame(x, b.x);
  ASSERT_EQ(recipe, b.recipe);
  ExpectSame(ranges, b.ranges);
  ASSERT_EQ(type, b.output_type);
  ASSERT_EQ(dimensions, b.dimensions);
  ASSERT_EQ(normalize, b.normalize);
  ASSERT_EQ(order, b.bit_order);
  ASSERT_EQ(threshold, b.bit_threshold);
  ASSERT_EQ(signed_bits, b.signed_bits);
  ASSERT_EQ(non_finite, b.non_finite);
  ASSERT_EQ(report, b.report_error);
}
void ExpectSame(const absl::StatusOr<Request>& a, const absl::StatusOr<Request>& b) {
  ASSERT_EQ(a.status(), b.status());
  if (!a.ok()) return;
  ASSERT_EQ(a->method(), b->method());
  ASSERT_EQ(a->output_encoding, b->output_encoding);
  std::visit(
      [&](const auto& parameters) {
        ExpectSame(parameters, std::get<std::decay_t<decltype(parameters)>>(b->parameters));
      },
      a->parameters);
}

// ---- the request against the message, where no decoding is between them ----

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

// `request`, decoded from whatever bytes, against what protobuf made of them.
template <typename Parameters, typename Message>
void ExpectMeans(const absl::StatusOr<Request>& request, Method method, const Message& message) {
  const std::vector<uint8_t> canonical = ToBytes(message.SerializeAsString());
  ExpectSame(request, DecodeRequest(method, canonical));
  if (request.ok()) ExpectTensors(std::get<Parameters>(request->parameters), message);
}

template <typename Parameters, typename Message>
void TestRequests(Method method) {
  ForManyMessages({false, method}, kMessages, [&](const std::string& text, bool& accepted) {
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
  ForManyMessages({true}, kMessages, [](const std::string& text, bool& accepted) {
    v1::StreamRequest message;
    accepted = message.ParseFromString(text);
    const std::vector<uint8_t> bytes = ToBytes(text);
    const StreamItem item = DecodeStreamItem(bytes);
    if (!accepted) {
      ASSERT_EQ(item.request.status().code(), absl::StatusCode::kInvalidArgument);
      ASSERT_EQ(item.request.status().message(),
                "the message is truncated or not a quantd.v1.StreamRequest");
      ASSERT_FALSE(item.method.has_value());
      return;
    }
    ASSERT_EQ(item.id, message.id());
    switch (message.request_case()) {
      case v1::StreamRequest::kQuantize:
        ASSERT_EQ(item.method, Method::kQuantize);
        ExpectMeans<QuantizeParameters>(item.request, Method::kQuantize, message.quantize());
        break;
      case v1::StreamRequest::kDequantize:
        ASSERT_EQ(item.method, Method::kDequantize);
        ExpectMeans<DequantizeParameters>(item.request, Method::kDequantize, message.dequantize());
        break;
      case v1::StreamRequest::kDynamicQuantize:
        ASSERT_EQ(item.method, Method::kDynamicQuantize);
        ExpectMeans<DynamicQuantizeParameters>(item.request, Method::kDynamicQuantize,
                                               message.dynamic_quantize());
        break;
      case v1::StreamRequest::kQuantizeEmbeddings:
        ASSERT_EQ(item.method, Method::kQuantizeEmbeddings);
        ExpectMeans<QuantizeEmbeddingsParameters>(item.request, Method::kQuantizeEmbeddings,
                                                  message.quantize_embeddings());
        break;
      case v1::StreamRequest::REQUEST_NOT_SET:
        ASSERT_FALSE(item.method.has_value());
        ASSERT_EQ(item.request.status().code(), absl::StatusCode::kInvalidArgument);
        break;
    }
  });
}

}  // namespace
}  // namespace quantd::wire
