// Large responses, whose kernels run while they are sent: the bytes, the counts and the end of a
// call are those of any other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "quantd/dequantize.h"
#include "quantd/dynamic_quantize.h"
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

TEST(AsSent, IsWhatTheCoreMakes) {
  const TestServer server;
  const auto client = server.Connect();
  int32_t id = 1;
  double calls = 0;
  for (const v1::DataType output : {v1::DATA_TYPE_UINT8, v1::DATA_TYPE_INT4, v1::DATA_TYPE_INT2}) {
    const v1::QuantizeRequest request = Request(output);
    const std::string expected = Codes(request);
    for (const bool timed : {false, true}) {
      const transport::Fields metadata =
          timed ? transport::Fields{{"quantd-timing", "1"}} : transport::Fields{};
      client->Say(Headers(id, CallFields(Path("Quantize"), metadata)));
      Send(*client, id, request);
      ASSERT_EQ(client->Status(id), 0);
      v1::QuantizeResponse response;
      ASSERT_TRUE(response.ParseFromString(client->stream(id).Messages()->at(0)));
      EXPECT_TRUE(response.y().raw_data() == expected) << output << " " << timed;
      EXPECT_THAT(
          client->stream(id).trailers,
          testing::Contains(testing::Pair("quantd-timing-us", testing::HasSubstr("kernel=")))
              .Times(timed ? 1 : 0));
      ++calls;
      EXPECT_TRUE(server.Until(kKernels, calls));
      EXPECT_TRUE(server.Until("quantd_inflight_requests", 0));
      id += 2;
    }
    // And back again.
    v1::DequantizeRequest back;
    v1::QuantizeResponse response;
    ASSERT_TRUE(response.ParseFromString(client->stream(id - 2).Messages()->at(0)));
    *back.mutable_x() = response.y();
    *back.mutable_scale() = request.scale();
    back.set_axis(0);
    DequantizeParameters parameters;
    parameters.x = View(back.x());
    parameters.scale = View(back.scale());
    parameters.granularity.axis = 0;
    const absl::StatusOr<DequantizePlan> plan = PlanDequantize(parameters);
    ASSERT_TRUE(plan.ok()) << plan.status();
    std::string y(plan->output_bytes, '?');
    ASSERT_TRUE(quantd::Dequantize(*plan, parameters.x.bytes, Executor(1), [] { return false; },
                                   {reinterpret_cast<uint8_t*>(y.data()), y.size()})
                    .ok());
    ASSERT_EQ(Call(*client, id, "Dequantize", back), 0);
    v1::DequantizeResponse floats;
    ASSERT_TRUE(floats.ParseFromString(client->stream(id).Messages()->at(0)));
    EXPECT_TRUE(floats.y().raw_data() == y) << output;
    id += 2;
  }
}

// What is not sent is not computed, and nothing is held after the call.
TEST(AsSent, ACallThatEndsInTheMiddle) {
  const TestServer server;
  const auto client = server.Connect(100'000);
  client->grants = false;
  client->Say(Headers(1, CallFields(Path("Quantize"))));
  Send(*client, 1, Request(v1::DATA_TYPE_UINT8));
  ASSERT_TRUE(client->Until([&] { return client->stream(1).data.size() >= 50'000; }));
  EXPECT_GT(server.Metric("quantd_inflight_bytes"), 0);
  client->Say(transport::Rst(1));
  ASSERT_TRUE(client->Heard());
  EXPECT_TRUE(server.Until("quantd_inflight_bytes", 0));
  EXPECT_EQ(server.Metric(kKernels), 0);
}

// No memory is held for it, either.
TEST(AsSent, TakesTheMemoryOfAFewParts) {
  const TestServer server;
  const auto client = server.Connect(100'000);
  client->grants = false;
  v1::DequantizeRequest request;
  request.mutable_x()->set_data_type(v1::DATA_TYPE_UINT8);
  request.mutable_x()->add_shape(2 << 20);
  request.mutable_x()->set_raw_data(std::string(2 << 20, 'x'));
  *request.mutable_scale() = Floats({});
  client->Say(Headers(1, CallFields(Path("Dequantize"))));
  Send(*client, 1, request);
  ASSERT_TRUE(client->Until([&] { return client->stream(1).data.size() >= 50'000; }));
  EXPECT_GT(server.Metric("quantd_inflight_bytes"), 0);
  EXPECT_GT(server.Metric("quantd_inflight_bytes"), 2 << 20);
  EXPECT_LT(server.Metric("quantd_inflight_bytes"), 4 << 20);  // while y has 8 MiB
  client->grants = true;
  client->Say(transport::WindowUpdate(1, 1 << 30) + transport::WindowUpdate(0, 1 << 30));
  ASSERT_EQ(client->Status(1), 0);
  EXPECT_TRUE(server.Until("quantd_inflight_bytes", 0));
}

// A report is known only when all of y is made, and a request's memory is given back early unless
// there is plenty of it: such responses are not made while they are sent.
TEST(AsSent, NotWithAReportNorWhenMemoryIsShort) {
  for (const bool report : {true, false}) {
    const TestServer server(
        {report ? "--memory_budget_bytes=1000000000" : "--memory_budget_bytes=10000000"});
    const auto client = server.Connect(100'000);
    client->grants = false;
    v1::QuantizeRequest request = Request(v1::DATA_TYPE_UINT8);
    request.set_report_error(report);
    client->Say(Headers(1, CallFields(Path("Quantize"))));
    Send(*client, 1, request);
    ASSERT_TRUE(client->Until([&] { return client->stream(1).data.size() >= 50'000; }));
    EXPECT_EQ(server.Metric(kKernels), 1) << report;
  }
}

}  // namespace as_sent_test
}  // namespace quantd::rpc
