// What is counted of a call, exactly, and what a client that asks for it is told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "testing.h"

namespace quantd::rpc {
namespace {

using transport::CallFields;
using transport::Headers;

std::string OfMethod(absl::string_view name, absl::string_view type, absl::string_view method,
                     absl::string_view more = "") {
  return absl::StrCat(name, "{grpc_type=\"", type,
                      "\",grpc_service=\"quantd.v1.QuantizationService\",grpc_method=\"", method,
                      "\"", more, "}");
}

std::string Bytes(absl::string_view operation, absl::string_view direction) {
  return absl::StrCat("quantd_tensor_bytes_total{operation=\"", operation, "\",direction=\"",
                      direction, "\"}");
}

std::string Elements(absl::string_view operation, absl::string_view output) {
  return absl::StrCat("quantd_elements_total{operation=\"", operation,
                      "\",input_type=\"FLOAT\",output_type=\"", output, "\"}");
}

struct Sample {
  std::string name;
  double value;
};

class Counts : public testing::Test {
 protected:
  void Expect(const std::vector<Sample>& samples) const {
    for (const Sample& sample : samples) {
      const double value = server_.Metric(sample.name);
      // Some series are not shown before they count.
      EXPECT_EQ(std::isnan(value) ? 0 : value, sample.value) << sample.name;
    }
  }
  void Begin(int32_t id, absl::string_view method) {
    client_->Say(Headers(id, CallFields(Path(method), {{"quantd-timing", "1"}})));
  }

  TestServer server_;
  std::unique_ptr<transport::Client> client_ = server_.Connect();
};

void ExpectTiming(const std::string& text) {
  std::vector<std::string> names;
  for (size_t i = 0; i < text.size();) {
    const size_t end = text.find('=', i);
    if (end == std::string::npos) break;
    names.push_back(text.substr(i, end - i));
    i = std::min(text.find(',', end), text.size() - 1) + 1;
  }
  EXPECT_THAT(names, testing::ElementsAre("decode", "queue", "kernel", "encode")) << text;
}

// Two messages with x and one with a state. Counted are the kernel times of each, of the result,
// and of the returned state.
TEST_F(Counts, OfAStream) {
  v1::StreamRequest good;
  good.set_id(7);
  *good.mutable_quantize() = Quantize(Floats({5}, 300));
  good.mutable_quantize()->set_report_error(true);
  v1::StreamRequest bad = good;
  bad.mutable_quantize()->mutable_scale()->add_shape(9);
  Begin(1, "Stream");
  for (const v1::StreamRequest& item : {good, bad, good}) Send(*client_, 1, item, false);
  client_->Say(transport::Data(1, "", true));
  ASSERT_EQ(client_->Status(1), 0);
  ExpectTiming(client_->stream(1).Trailer("quantd-timing-us"));
  ASSERT_TRUE(server_.Until(
      OfMethod("grpc_server_handled_total", "bidi_stream", "Stream", ",grpc_code=\"OK\""), 1));
  Expect({{Bytes("quantize", "in"), 40},
          {Bytes("quantize", "out"), 10},
          {Elements("quantize", "UINT8"), 10},
          {"quantd_saturated_elements_total", 10},
          {"quantd_kernel_seconds_count{operation=\"quantize\"}", 2},
          {"quantd_queue_seconds_count", 2},
          {OfMethod("grpc_server_msg_received_total", "bidi_stream", "Stream"), 3},
          {OfMethod("grpc_server_msg_sent_total", "bidi_stream", "Stream"), 3}});
}

TEST_F(Counts, OfACall) {
  EXPECT_EQ(Call(*client_, 1, "Quantize", Quantize(Floats({5}))), 0);
  EXPECT_EQ(client_->stream(1).Trailer("quantd-timing-us"), "");
  client_->Say(transport::CallHead(3, Path("Quantize"), true));
  EXPECT_EQ(client_->Status(3), 3);
  ASSERT_TRUE(server_.Until(
      OfMethod("grpc_server_handled_total", "unary", "Quantize", ",grpc_code=\"InvalidArgument\""),
      1));
  Expect({{Bytes("quantize", "in"), 20},
          {Bytes("quantize", "out"), 5},
          {Elements("quantize", "UINT8"), 5},
          {"quantd_saturated_elements_total", 0},
          {OfMethod("grpc_server_msg_received_total", "unary", "Quantize"), 1},
          {OfMethod("grpc_server_msg_sent_total", "unary", "Quantize"), 1}});
}

// Work on the thread that leads a loop takes one core's time.
TEST_F(Counts, BusyTimeOfOneCore) {
  using Seconds = std::chrono::duration<double>;
  constexpr char kBusy[] = "quantd_busy_core_seconds_total";
  constexpr Seconds kStands{0.2};
  Gate gate;
  int reached = 0;
  const auto busy = [&](int32_t id, absl::string_view method,
                        const google::protobuf::MessageLite& request) {
    const double before = server_.Metric(kBusy);
    const auto begin = std::chrono::steady_clock::now();
    gate.Close();
    client_->Say(transport::CallHead(id, Path(method)));
    Send(*client_, id, request);
    EXPECT_TRUE(gate.Reached(++reached));
    std::this_thread::sleep_for(kStands);
    gate.Open();
    EXPECT_EQ(client_->Status(id), 0);
    const Seconds took = std::chrono::steady_clock::now() - begin;
    const double counted = server_.Metric(kBusy) - before;
    EXPECT_GE(counted, kStands.count()) << method;
    EXPECT_LE(counted, took.count()) << method;
  };
  busy(1, "Quantize", Quantize(Floats({5})));
}

// A client disconnects while its call computes: the kernel ends early and is not counted.
TEST_F(Counts, OfWhatIsCancelledNothing) {
  constexpr int64_t kLong = 400'000;
  Gate gate;
  gate.Close();
  client_->Say(transport::CallHead(1, Path("Quantize")));
  Send(*client_, 1, Quantize(Floats({kLong})));
  ASSERT_TRUE(gate.Reached(1));
  client_->Say(transport::Rst(1));
  EXPECT_TRUE(client_->Heard());
  gate.Open();
  EXPECT_TRUE(server_.Until("quantd_busy_cores", 0));
  EXPECT_TRUE(server_.Until("quantd_inflight_bytes", 0));
  Expect(
      {{"quantd_kernel_seconds_count{operation=\"quantize\"}", 0}, {Bytes("quantize", "in"), 0}});
}

}  // namespace
}  // namespace quantd::rpc
