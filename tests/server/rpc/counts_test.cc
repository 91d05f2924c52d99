// What is counted of a call that ends early, and how long cores are busy. test_metrics.py has the
// counts of whole calls.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "testing.h"

namespace quantd::rpc {
namespace {

// Work on the thread that leads a loop takes one core's time.
TEST(Counts, BusyTimeOfOneCore) {
  using Seconds = std::chrono::duration<double>;
  constexpr Seconds kStands{0.2};
  const TestServer server;
  const auto client = server.Connect();
  Gate gate;
  gate.Close();
  const auto begin = std::chrono::steady_clock::now();
  Begin(*client, 1, "Quantize", Quantize(Floats({5})));
  EXPECT_TRUE(gate.Reached(1));
  std::this_thread::sleep_for(kStands);
  gate.Open();
  EXPECT_EQ(client->Status(1), 0);
  const Seconds took = std::chrono::steady_clock::now() - begin;
  const double counted = server.Metric("quantd_busy_core_seconds_total");
  EXPECT_GE(counted, kStands.count());
  EXPECT_LE(counted, took.count());
}

// A client disconnects while its call computes: the kernel ends early and is not counted.
TEST(Counts, OfWhatIsCancelledNothing) {
  const TestServer server;
  const auto client = server.Connect();
  Gate gate;
  gate.Close();
  Begin(*client, 1, "Quantize", Quantize(Floats({400'000})));
  ASSERT_TRUE(gate.Reached(1));
  client->Say(transport::Rst(1));
  EXPECT_TRUE(client->Heard());
  gate.Open();
  EXPECT_TRUE(server.Until("quantd_busy_cores", 0));
  EXPECT_TRUE(server.Until("quantd_inflight_bytes", 0));
  EXPECT_EQ(server.Metric("quantd_kernel_seconds_count{operation=\"quantize\"}"), 0);
  EXPECT_EQ(server.Metric("quantd_tensor_bytes_total{operation=\"quantize\",direction=\"in\"}"), 0);
}

}  // namespace
}  // namespace quantd::rpc
