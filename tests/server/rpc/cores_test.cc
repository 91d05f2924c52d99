// What must hold on many cores, shown on any machine: kernels that wait at the gate use no CPU.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "testing.h"

namespace quantd::rpc {
namespace {

class Cores : public testing::TestWithParam<int> {};

TEST_P(Cores, AllOfThemComputeAndNoMore) {
  constexpr int kCores = 16;
  constexpr int kCalls = 40;
  const int connections = GetParam();
  const TestServer server({absl::StrCat("--threads=", kCores)});
  Gate gate;
  gate.Close();
  const v1::QuantizeRequest request = Quantize(Floats({400'000}));
  std::vector<std::unique_ptr<transport::Client>> clients;
  for (int i = 0; i < connections; ++i) clients.push_back(server.Connect());
  const auto id = [=](int call) { return 2 * (call / connections) + 1; };
  for (int i = 0; i < kCalls; ++i) {
    transport::Client& client = *clients[i % connections];
    client.Say(transport::CallHead(id(i), Path("Quantize")));
    Send(client, id(i), request);
  }
  EXPECT_TRUE(gate.Reached(kCores));
  EXPECT_TRUE(server.Until("quantd_queued_requests", kCalls - kCores));
  EXPECT_EQ(server.Metric("quantd_busy_cores"), kCores);
  gate.Open();
  for (int i = 0; i < kCalls; ++i) EXPECT_EQ(clients[i % connections]->Status(id(i)), 0);
  EXPECT_TRUE(server.Until("quantd_busy_cores", 0));
}

INSTANTIATE_TEST_SUITE_P(Connections, Cores, testing::Values(1, 16));

}  // namespace
}  // namespace quantd::rpc
