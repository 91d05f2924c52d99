// What is counted of a call that ends early, and how long cores are busy. test_metrics.py has the
// counts of whole calls.
#include <gtest/gtest.h>

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

std::string Bytes(absl::string_view operation, absl::string_view direction) {
  return absl::StrCat("quantd_tensor_bytes_total{operation=\"", operation, "\",direction=\"",
                      direction, "\"}");
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

  TestServer server_;
  std::unique_ptr<transport::Client> client_ = server_.Connect();
};

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
