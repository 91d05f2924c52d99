// Where a call computes: short work on the thread that leads its loop, long work on one that has
// given up the lead. Estimates decide (costs.h), and the clock if they were wrong. And on how many
// cores.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "testing.h"

namespace quantd::rpc {
namespace {

struct Case {
  std::string name;
  std::string message;  // of Quantize
  bool leads;           // its kernel's thread
  bool compressed = false;
};

std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

std::vector<Case> Cases() {
  const auto of = [](const v1::Tensor& x) { return Quantize(x).SerializeAsString(); };
  const auto repeat = [](const std::string& field, int times) {
    std::string fields;
    for (int i = 0; i < times; ++i) fields += field;
    return fields;
  };
  const std::string unknown = "\x78\x01", saturate = "\x38\x01";
  return {
      // 0.8 ns per element; up to 300 us are short.
      {"Small", of(Floats({3})), true},
      {"BelowShort", of(Floats({374'000})), true},
      {"AboveShort", of(Floats({376'000})), false},
      // Decoded late: 52 bytes for each of its bytes, and a nanosecond for each of these.
      {"FewValues", of(FloatValues({1'300})), true},
      {"ManyValues", of(FloatValues({1'600})), false},
      // Also decoded late, because of fields beyond the first ones: 52 bytes for each byte not
      // looked at.
      {"FewMoreFields", repeat(unknown, 3'000) + of(Floats({3})), true},
      {"ManyMoreFields", repeat(unknown, 5'000) + of(Floats({3})), false},
      // Any of the bytes may be values: 10 ns each. Of the copies of a small field the last counts.
      {"FewElementsDecodedLate", of(Floats({5'000})) + repeat(saturate, 700), true},
      {"ManyElementsDecodedLate", of(Floats({50'000})) + repeat(saturate, 700), false},
      // 10 ns per byte of a compressed response.
      {"FewBytesToCompress", of(Floats({26'000})), true, true},
      {"ManyBytesToCompress", of(Floats({31'000})), false, true},
  };
}

class Where : public testing::TestWithParam<Case> {};

TEST_P(Where, IsDecidedByItsEstimate) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  if (GetParam().leads) GTEST_SKIP() << "short work is not short with a sanitizer";
#endif
  const TestServer server;
  const auto client = server.Connect();
  bool led = false;
  // Short work that the system interrupts for a millisecond hands over the lead: it has more tries.
  for (int id = 1; id < (GetParam().leads ? 11 : 2) && !led; id += 2) {
    Gate gate;
    gate.Close();
    client->Say(QuantizeHead(id, GetParam().compressed));
    SendBytes(*client, id, GetParam().message);
    ASSERT_TRUE(gate.Reached(1));
    led = gate.led();
    gate.Open();
    EXPECT_EQ(client->Status(id), 0);
    EXPECT_TRUE(server.Until("quantd_busy_cores", 0));
  }
  EXPECT_EQ(led, GetParam().leads);
}

INSTANTIATE_TEST_SUITE_P(Calls, Where, testing::ValuesIn(Cases()),
                         [](const auto& case_info) { return case_info.param.name; });

// Work that was estimated short but takes long hands over the lead, and takes a core.
TEST(WhereAfterAll, WorkThatTakesLongLeavesItsLoop) {
  const TestServer server({"--event_loops=1"});
  const auto client = server.Connect();
  Gate gate;
  gate.Close();
  Begin(*client, 1, "Quantize", Quantize(Floats({1'000})));
  ASSERT_TRUE(gate.Reached(1));
  EXPECT_TRUE(gate.led());
  EXPECT_EQ(server.Metric("quantd_busy_cores"), 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  gate.Open();
  EXPECT_EQ(client->Status(1), 0);
  EXPECT_TRUE(server.Until("quantd_busy_cores", 0));
}

// On any machine: kernels that wait at the gate use no CPU.
TEST(WhereAfterAll, AllCoresComputeAndNoMore) {
  constexpr int kCores = 16;
  constexpr int kCalls = 40;
  const v1::QuantizeRequest request = Quantize(Floats({400'000}));
  for (const int connections : {1, 16}) {
    const TestServer server({absl::StrCat("--threads=", kCores)});
    Gate gate;
    gate.Close();
    std::vector<std::unique_ptr<transport::Client>> clients;
    for (int i = 0; i < connections; ++i) clients.push_back(server.Connect());
    const auto id = [=](int call) { return 2 * (call / connections) + 1; };
    for (int i = 0; i < kCalls; ++i) Begin(*clients[i % connections], id(i), "Quantize", request);
    EXPECT_TRUE(gate.Reached(kCores));
    EXPECT_TRUE(server.Until("quantd_queued_requests", kCalls - kCores));
    EXPECT_EQ(server.Metric("quantd_busy_cores"), kCores);
    gate.Open();
    for (int i = 0; i < kCalls; ++i) EXPECT_EQ(clients[i % connections]->Status(id(i)), 0);
    EXPECT_TRUE(server.Until("quantd_busy_cores", 0));
  }
}

}  // namespace
}  // namespace quantd::rpc
