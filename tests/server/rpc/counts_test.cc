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
TEST_F(Counts, OfACalibration) {
  v1::CalibrateRequest first = Calibrate(Floats({100, 3}), v1::CALIBRATION_METHOD_PERCENTILE);
  first.mutable_options()->set_axis(1);
  first.mutable_options()->set_return_state(true);
  first.mutable_options()->set_output_type(v1::DATA_TYPE_INT8);
  ASSERT_EQ(Call(*client_, 1, "Calibrate", first), 0);
  v1::CalibrateResponse alone;
  ASSERT_TRUE(alone.ParseFromString(client_->stream(1).Messages()->at(0)));
  // Scales, both ends of the ranges, zero points.
  const double out = 3 * (4 + 8 + 1);
  const auto state = static_cast<double>(alone.state().size());
  Expect({{Bytes("calibrate", "in"), 1'200},
          {Bytes("calibrate", "out"), out + state},
          {Elements("calibrate", "INT8"), 300},
          {"quantd_kernel_seconds_count{operation=\"calibrate\"}", 3},
          {"quantd_queue_seconds_count", 1}});

  v1::CalibrateRequest second;
  *second.mutable_x() = Floats({50, 3}, -7);
  v1::CalibrateRequest third;
  third.set_state(alone.state());
  first.mutable_options()->set_return_state(false);
  Begin(3, "Calibrate");
  Send(*client_, 3, first, false);
  Send(*client_, 3, second, false);
  Send(*client_, 3, third);
  ASSERT_EQ(client_->Status(3), 0);
  ExpectTiming(client_->stream(3).Trailer("quantd-timing-us"));
  v1::CalibrateResponse response;
  ASSERT_TRUE(response.ParseFromString(client_->stream(3).Messages()->at(0)));
  EXPECT_EQ(response.elements(), 300 + 150 + 300);
  EXPECT_EQ(response.state(), "");
  const std::string ok = ",grpc_code=\"OK\"";
  ASSERT_TRUE(
      server_.Until(OfMethod("grpc_server_handled_total", "client_stream", "Calibrate", ok), 2));
  Expect({{Bytes("calibrate", "in"), 1'200 + 1'200 + 600 + state},
          {Bytes("calibrate", "out"), out + state + out},
          {Elements("calibrate", "INT8"), 300 + 300 + 150},
          {"quantd_kernel_seconds_count{operation=\"calibrate\"}", 3 + 4},
          {"quantd_queue_seconds_count", 1 + 3},
          {OfMethod("grpc_server_started_total", "client_stream", "Calibrate"), 2},
          {OfMethod("grpc_server_msg_received_total", "client_stream", "Calibrate"), 4},
          {OfMethod("grpc_server_msg_sent_total", "client_stream", "Calibrate"), 2}});
  EXPECT_GT(server_.Metric("quantd_busy_core_seconds_total"), 0);
}

TEST_F(Counts, OfACalibrationThatFails) {
  v1::CalibrateRequest request = Calibrate(Floats({4}), v1::CALIBRATION_METHOD_MIN_MAX);
  request.mutable_options()->set_axis(7);
  EXPECT_EQ(Call(*client_, 1, "Calibrate", request), 3);
  // Nothing was sent, or nothing with data.
  client_->Say(transport::CallHead(3, Path("Calibrate"), true));
  EXPECT_EQ(client_->Status(3), 3);
  request.Clear();
  request.mutable_options()->set_axis(0);
  EXPECT_EQ(Call(*client_, 5, "Calibrate", request), 3);
  const std::string invalid = ",grpc_code=\"InvalidArgument\"";
  ASSERT_TRUE(server_.Until(
      OfMethod("grpc_server_handled_total", "client_stream", "Calibrate", invalid), 3));
  Expect({{Bytes("calibrate", "in"), 0},
          {Bytes("calibrate", "out"), 0},
          {Elements("calibrate", "UINT8"), 0},
          {OfMethod("grpc_server_msg_received_total", "client_stream", "Calibrate"), 2},
          {OfMethod("grpc_server_msg_sent_total", "client_stream", "Calibrate"), 0},
          {"quantd_inflight_bytes", 0}});
}

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
  busy(3, "Calibrate", Calibrate(Floats({5}), v1::CALIBRATION_METHOD_MIN_MAX));
}

// A client disconnects while its call computes: the kernel ends early and is not counted.
TEST_F(Counts, OfWhatIsCancelledNothing) {
  constexpr int64_t kLong = 400'000;
  Gate gate;
  gate.Close();
  client_->Say(transport::CallHead(1, Path("Quantize")));
  Send(*client_, 1, Quantize(Floats({kLong})));
  client_->Say(transport::CallHead(3, Path("Calibrate")));
  Send(*client_, 3, Calibrate(Floats({kLong}), v1::CALIBRATION_METHOD_MIN_MAX));
  ASSERT_TRUE(gate.Reached(2));
  for (const int32_t id : {1, 3}) client_->Say(transport::Rst(id));
  EXPECT_TRUE(client_->Heard());
  gate.Open();
  EXPECT_TRUE(server_.Until("quantd_busy_cores", 0));
  EXPECT_TRUE(server_.Until("quantd_inflight_bytes", 0));
  Expect({{"quantd_kernel_seconds_count{operation=\"quantize\"}", 0},
          {"quantd_kernel_seconds_count{operation=\"calibrate\"}", 0},
          {Bytes("quantize", "in"), 0},
          {Bytes("calibrate", "in"), 0}});
}

// A result that waits for a core: the wait belongs to the time in the queue.
TEST_F(Counts, OfAResultThatWaits) {
  constexpr int64_t kLong = 400'000;
  Gate gate;
  gate.Close();
  Begin(1, "Calibrate");
  Send(*client_, 1, Calibrate(Floats({5}), v1::CALIBRATION_METHOD_MSE), false);
  ASSERT_TRUE(gate.Reached(1));
  gate.Pass();
  const auto other = server_.Connect();
  for (const int32_t id : {1, 3}) {
    other->Say(transport::CallHead(id, Path("Quantize")));
    Send(*other, id, Quantize(Floats({kLong})));
  }
  ASSERT_TRUE(gate.Reached(3));
  client_->Say(transport::Data(1, "", true));
  EXPECT_TRUE(client_->Taken());
  ASSERT_TRUE(server_.Until("quantd_queued_requests", 1));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  gate.Open();
  EXPECT_EQ(client_->Status(1), 0);
  const std::string timing = client_->stream(1).Trailer("quantd-timing-us");
  const size_t queue = timing.find("queue=");
  ASSERT_NE(queue, std::string::npos) << timing;
  EXPECT_GE(std::stoi(timing.substr(queue + 6)), 50'000) << timing;
  for (const int32_t id : {1, 3}) EXPECT_EQ(other->Status(id), 0);
}

}  // namespace
}  // namespace quantd::rpc
