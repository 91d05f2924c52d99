// Large responses, whose kernels run while they are sent: the bytes, the counts and the end of a
// call are those of any other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "testing.h"

namespace quantd::rpc {
namespace as_sent_test {

using transport::CallFields;
using transport::Headers;

constexpr int64_t kRows = 1025;
constexpr int64_t kColumns = 1031;
constexpr int64_t kElements = kRows * kColumns;
constexpr char kKernels[] = "quantd_kernel_seconds_count{operation=\"quantize\"}";

// Every row has its own scale, so that parts begin within rows.
v1::QuantizeRequest Request(v1::DataType output) {
  v1::Tensor x = Floats({kRows, kColumns});
  auto* const values = reinterpret_cast<float*>(x.mutable_raw_data()->data());
  for (int64_t i = 0; i < kElements; ++i) values[i] = static_cast<float>(i % 977 - 488) / 7;
  v1::QuantizeRequest request = Quantize(std::move(x));
  *request.mutable_scale() = Floats({kRows});
  auto* const scales =
      reinterpret_cast<float*>(request.mutable_scale()->mutable_raw_data()->data());
  for (int64_t i = 0; i < kRows; ++i) scales[i] = static_cast<float>(i % 31 + 1) / 16;
  request.clear_zero_point();
  request.set_axis(0);
  request.set_output_type(output);
  return request;
}

// The response to an item, whose kernels run before it is sent.
v1::StreamResponse OfAnItem(transport::Client& client, int32_t id, const v1::StreamRequest& item) {
  v1::StreamResponse response;
  EXPECT_EQ(Call(client, id, "Stream", item), 0);
  EXPECT_TRUE(response.ParseFromString(client.stream(id).Messages()->at(0)));
  return response;
}

TEST(AsSent, HasTheBytesOfAnItem) {
  const TestServer server;
  const auto client = server.Connect();
  int32_t id = 1;
  double calls = 0;
  for (const v1::DataType output : {v1::DATA_TYPE_UINT8, v1::DATA_TYPE_INT4, v1::DATA_TYPE_INT2}) {
    v1::StreamRequest item;
    *item.mutable_quantize() = Request(output);
    const v1::QuantizeResponse codes = OfAnItem(*client, id, item).quantize();
    ++calls;
    for (const bool timed : {false, true}) {
      id += 2;
      const transport::Fields metadata =
          timed ? transport::Fields{{"quantd-timing", "1"}} : transport::Fields{};
      client->Say(Headers(id, CallFields(Path("Quantize"), metadata)));
      Send(*client, id, item.quantize());
      ASSERT_EQ(client->Status(id), 0);
      EXPECT_TRUE(client->stream(id).Messages()->at(0) == codes.SerializeAsString())
          << output << " " << timed;
      EXPECT_THAT(
          client->stream(id).trailers,
          testing::Contains(testing::Pair("quantd-timing-us", testing::HasSubstr("kernel=")))
              .Times(timed ? 1 : 0));
      EXPECT_TRUE(server.Until(kKernels, ++calls));
      EXPECT_TRUE(server.Until("quantd_inflight_requests", 0));
    }
    // And back again.
    v1::DequantizeRequest& back = *item.mutable_dequantize();
    *back.mutable_x() = codes.y();
    *back.mutable_scale() = Request(output).scale();
    back.set_axis(0);
    const v1::DequantizeResponse floats = OfAnItem(*client, id + 2, item).dequantize();
    ASSERT_EQ(Call(*client, id + 4, "Dequantize", back), 0);
    EXPECT_TRUE(client->stream(id + 4).Messages()->at(0) == floats.SerializeAsString()) << output;
    id += 6;
  }
}

// A client that reads a part of its response only.
class AsSentInPart : public testing::Test {
 protected:
  void Begin(absl::string_view method, const google::protobuf::MessageLite& request) {
    client_ = server_->Connect(100'000);
    client_->grants = false;
    rpc::Begin(*client_, 1, method, request);
    ASSERT_TRUE(client_->Until([&] { return client_->stream(1).data.size() >= 50'000; }));
  }
  std::unique_ptr<TestServer> server_ = std::make_unique<TestServer>();
  std::unique_ptr<transport::Client> client_;
};

// What is not sent is not computed, and nothing is held after the call.
TEST_F(AsSentInPart, ACallThatEndsInTheMiddle) {
  Begin("Quantize", Request(v1::DATA_TYPE_UINT8));
  EXPECT_GT(server_->Metric("quantd_inflight_bytes"), 0);
  client_->Say(transport::Rst(1));
  ASSERT_TRUE(client_->Heard());
  EXPECT_TRUE(server_->Until("quantd_inflight_bytes", 0));
  EXPECT_EQ(server_->Metric(kKernels), 0);
}

// No memory is held for it, either.
TEST_F(AsSentInPart, TakesTheMemoryOfAFewParts) {
  v1::DequantizeRequest request;
  request.mutable_x()->set_data_type(v1::DATA_TYPE_UINT8);
  request.mutable_x()->add_shape(2 << 20);
  request.mutable_x()->set_raw_data(std::string(2 << 20, 'x'));
  *request.mutable_scale() = Floats({});
  Begin("Dequantize", request);
  EXPECT_GT(server_->Metric("quantd_inflight_bytes"), 2 << 20);
  EXPECT_LT(server_->Metric("quantd_inflight_bytes"), 4 << 20);  // while y has 8 MiB
  client_->grants = true;
  client_->Say(transport::WindowUpdate(1, 1 << 30) + transport::WindowUpdate(0, 1 << 30));
  ASSERT_EQ(client_->Status(1), 0);
  EXPECT_TRUE(server_->Until("quantd_inflight_bytes", 0));
}

// A report is known only when all of y is made, and a request's memory is given back early unless
// there is plenty of it: such responses are not made while they are sent.
TEST_F(AsSentInPart, NotWithAReportNorWhenMemoryIsShort) {
  for (const bool report : {true, false}) {
    client_.reset();
    server_ = std::make_unique<TestServer>(std::vector<std::string>{
        report ? "--memory_budget_bytes=1000000000" : "--memory_budget_bytes=10000000"});
    v1::QuantizeRequest request = Request(v1::DATA_TYPE_UINT8);
    request.set_report_error(report);
    Begin("Quantize", request);
    EXPECT_EQ(server_->Metric(kKernels), 1) << report;
  }
}

}  // namespace as_sent_test
}  // namespace quantd::rpc
