// From a request's bytes to the response's bytes, without a server.
#include "server/operations/operation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "quantd/field_error.h"
#include "server/memory/buffer.h"
#include "server/operations/memory.h"
#include "server/wire/decode.h"
#include "server/wire/encode.h"
#include "wire_testing.h"

namespace quantd::operations {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using wire::Bytes;
using wire::MakeTensor;

const Executor& TestExecutor() {
  static const Executor* const executor = new Executor(2);
  return *executor;
}

// The steps of the server's calls.
absl::StatusOr<std::string> Serve(wire::Method method, const std::string& message,
                                  bool interrupted = false) {
  const std::vector<uint8_t> bytes = wire::ToBytes(message);
  const absl::StatusOr<wire::Request> request = wire::DecodeRequest(method, bytes);
  if (!request.ok()) return request.status();
  const absl::StatusOr<Operation> operation = Plan(*request);
  if (!operation.ok()) return operation.status();
  EXPECT_EQ(operation->method(), method);
  EXPECT_LE(operation->memory_bytes(), MemoryBound(*request));
  memory::Pool pool;
  wire::Response response(operation->response_layout(), pool);
  EXPECT_TRUE(response.has_memory());
  const absl::Status status =
      operation->Execute(TestExecutor(), [&] { return interrupted; }, response.contents());
  if (!status.ok()) return status;
  const memory::Piece piece = std::move(response).Finish();
  EXPECT_LE(piece.size, operation->memory_bytes());
  return wire::ToString(piece);
}
absl::StatusOr<std::string> Serve(wire::Method method, const google::protobuf::Message& request) {
  return Serve(method, request.SerializeAsString());
}

template <typename Response>
Response MustServe(wire::Method method, const google::protobuf::Message& request) {
  Response response;
  const absl::StatusOr<std::string> bytes = Serve(method, request);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_TRUE(bytes.ok() && response.ParseFromString(*bytes));
  return response;
}

v1::Tensor Floats(const std::vector<int64_t>& shape, const std::vector<float>& values) {
  return MakeTensor(v1::DATA_TYPE_FLOAT, shape, Bytes(values));
}

// The example of ONNX's QuantizeLinear.
TEST(OperationTest, ExecuteFillsTheResponse) {
  v1::QuantizeRequest request;
  *request.mutable_x() = Floats({6}, {0, 2, 3, 1000, -254, -1000});
  *request.mutable_scale() = Floats({}, {2});
  *request.mutable_zero_point() = MakeTensor(v1::DATA_TYPE_UINT8, {}, "\x80");
  const auto response = MustServe<v1::QuantizeResponse>(wire::Method::kQuantize, request);
  EXPECT_EQ(response.y().data_type(), v1::DATA_TYPE_UINT8);
  EXPECT_THAT(response.y().shape(), ElementsAre(6));
  EXPECT_EQ(response.y().raw_data(), Bytes(std::vector<uint8_t>{128, 129, 130, 255, 1, 0}));
  EXPECT_FALSE(response.has_quantization_error());
}

TEST(OperationTest, TypesElementsAndBytes) {
  v1::DynamicQuantizeRequest message;
  *message.mutable_x() = MakeTensor(v1::DATA_TYPE_FLOAT16, {3, 5}, std::string(30, '\0'));
  message.set_output_type(v1::DATA_TYPE_INT4);
  message.set_axis(0);
  const std::vector<uint8_t> bytes = wire::ToBytes(message.SerializeAsString());
  const auto request = wire::DecodeRequest(wire::Method::kDynamicQuantize, bytes);
  ASSERT_TRUE(request.ok());
  const auto operation = Plan(*request);
  ASSERT_TRUE(operation.ok()) << operation.status();
  EXPECT_EQ(operation->input_type(), DataType::kFloat16);
  EXPECT_EQ(operation->output_type(), DataType::kInt4);
  EXPECT_EQ(operation->elements(), 15);
  EXPECT_EQ(operation->input_bytes(), 30u);
  EXPECT_EQ(operation->output_bytes(), 8u + 3 * 4 + 2);
}

TEST(OperationTest, PlanAndExecuteNameTheField) {
  v1::DynamicQuantizeRequest request;
  *request.mutable_x() = Floats({3}, {1, 2});
  absl::Status status = Serve(wire::Method::kDynamicQuantize, request).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(ErrorField(status), HasSubstr("x"));
  *request.mutable_x() = Floats({2}, {1, NAN});
  status = Serve(wire::Method::kDynamicQuantize, request).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ErrorField(status), "x");
}

TEST(OperationTest, ExecuteIsCancelledIfInterrupted) {
  v1::QuantizeRequest request;
  *request.mutable_x() = Floats({1 << 20}, std::vector<float>(1 << 20));
  *request.mutable_scale() = Floats({}, {1});
  EXPECT_EQ(Serve(wire::Method::kQuantize, request.SerializeAsString(), true).status().code(),
            absl::StatusCode::kCancelled);
}

// Refused is what may be more than 2 GiB less 1 KiB with everything around it. No element of these
// is ever touched.
TEST(OperationTest, PlanRefusesResponsesOfTwoGibibytesLessOneKibibyte) {
  constexpr uint64_t kMost = (uint64_t{1} << 31) - 1024;
  memory::Pool pool;
  const memory::Buffer buffer = pool.Allocate(kMost / 16 + 1);
  ASSERT_NE(buffer.data(), nullptr);
  const std::vector<float> scale = {1};
  int refused = 0;
  for (uint64_t elements = kMost / 4 - 64; elements <= kMost / 4; ++elements) {
    DequantizeParameters parameters;
    parameters.x.data_type = DataType::kUint2;
    parameters.x.shape = {static_cast<int64_t>(elements)};
    parameters.x.bytes = absl::MakeConstSpan(buffer.data(), (elements + 3) / 4);
    parameters.scale.data_type = DataType::kFloat;
    parameters.scale.bytes = absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(scale.data()), 4);
    wire::Request request;
    request.parameters = parameters;
    wire::ResponseLayout layout;
    layout.method = wire::Method::kDequantize;
    layout.y = {DataType::kFloat, parameters.x.shape, static_cast<int64_t>(elements), 4 * elements};
    const bool fits = wire::MaxEncodedBytes(layout) <= kMost;
    const absl::Status status = Plan(request).status();
    EXPECT_EQ(status.code(), fits ? absl::StatusCode::kOk : absl::StatusCode::kResourceExhausted)
        << elements << ": " << status;
    refused += fits ? 0 : 1;
  }
  EXPECT_GT(refused, 5);
  EXPECT_LT(refused, 60);
}

}  // namespace
}  // namespace quantd::operations
