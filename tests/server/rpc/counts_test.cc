// What is counted of a call that ends early, and how long cores are busy. test_metrics.py has the
// counts of whole calls.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <string>
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

// The trailer of a stream has the sums over its items: each of two stands before its kernel.
TEST(Counts, TimesOfAllItems) {
  constexpr std::chrono::milliseconds kStands(20);
  const TestServer server;
  const auto client = server.Connect();
  Gate gate;
  gate.Close();
  v1::StreamRequest item;
  *item.mutable_quantize() = Quantize(Floats({5}));
  client->Say(
      transport::Headers(1, transport::CallFields(Path("Stream"), {{"quantd-timing", "1"}})));
  for (int i = 1; i <= 2; ++i) {
    Send(*client, 1, item, i == 2);
    ASSERT_TRUE(gate.Reached(i));
    std::this_thread::sleep_for(kStands);
    gate.Pass();
  }
  ASSERT_EQ(client->Status(1), 0);
  const std::string phases = client->stream(1).Trailer("quantd-timing-us");
  const size_t kernel = phases.find("kernel=");
  ASSERT_NE(kernel, std::string::npos);
  EXPECT_GE(std::atoi(&phases[kernel + 7]), 2'000 * kStands.count()) << phases;
}

}  // namespace
}  // namespace quantd::rpc
