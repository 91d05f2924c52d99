// Where a call computes: short work on the thread that leads its loop, long work on one that has
// given up the lead. Estimates decide (costs.h), and the clock if they were wrong.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
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
  std::string method;
  std::function<std::string()> message;
  // For each of its kernels in turn: 'l' if its thread leads, '-' if not.
  std::string expected;
  transport::Fields metadata = {};
};

std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

Case OfQuantize(const std::string& name, const v1::Tensor& x, const std::string& expected) {
  return {name, "Quantize", [x] { return Quantize(x).SerializeAsString(); }, expected};
}

// With `fields` unknown fields of two bytes.
Case OfFields(const std::string& name, int fields, const std::string& expected) {
  const auto message = [fields] {
    std::string unknown;
    for (int i = 0; i < fields; ++i) unknown += "\x78\x01";
    return unknown + Quantize(Floats({3})).SerializeAsString();
  };
  return {name, "Quantize", message, expected};
}

// With enough copies of a small field, the last of which counts, to be decoded late.
Case OfElementsDecodedLate(const std::string& name, int64_t elements, const std::string& expected) {
  const auto message = [elements] {
    std::string saturate;
    for (int i = 0; i < 700; ++i) saturate += "\x38\x01";
    return Quantize(Floats({elements})).SerializeAsString() + saturate;
  };
  return {name, "Quantize", message, expected};
}

std::vector<Case> Cases() {
  std::vector<Case> cases = {
      // 0.8 ns per element; up to 300 us are short.
      OfQuantize("Small", Floats({3}), "l"),
      OfQuantize("BelowShort", Floats({374'000}), "l"),
      OfQuantize("AboveShort", Floats({376'000}), "-"),
      // Decoded late: 52 bytes for each of its bytes, and a nanosecond for each of these.
      OfQuantize("FewValues", FloatValues({1'300}), "l"),
      OfQuantize("ManyValues", FloatValues({1'600}), "-"),
      // Also decoded late, because of fields beyond the first ones: 52 bytes for each byte not
      // looked at.
      OfFields("FewMoreFields", 3'000, "l"),
      OfFields("ManyMoreFields", 5'000, "-"),
      // Any of the bytes may be values: 10 ns each.
      OfElementsDecodedLate("FewElementsDecodedLate", 5'000, "l"),
      OfElementsDecodedLate("ManyElementsDecodedLate", 50'000, "-"),
  };
  // 10 ns per byte of a compressed response.
  const transport::Fields gzip = {{"grpc-accept-encoding", "gzip"},
                                  {"quantd-compress-answers", "gzip"}};
  cases.push_back(OfQuantize("FewBytesToCompress", Floats({26'000}), "l"));
  cases.back().metadata = gzip;
  cases.push_back(OfQuantize("ManyBytesToCompress", Floats({31'000}), "-"));
  cases.back().metadata = gzip;
  return cases;
}

class Where : public testing::TestWithParam<Case> {};

TEST_P(Where, IsDecidedByItsEstimate) {
  const TestServer server;
  const auto client = server.Connect();
  Gate gate;
  gate.Close();
  client->Say(
      transport::Headers(1, transport::CallFields(Path(GetParam().method), GetParam().metadata)));
  EXPECT_TRUE(client->SayFrames(1, transport::Prefixed(GetParam().message()), 16'000, true));
  EXPECT_TRUE(client->Taken());
  std::string seen;
  for (size_t i = 0; i < GetParam().expected.size(); ++i) {
    ASSERT_TRUE(gate.Reached(static_cast<int>(i) + 1));
    seen += gate.led() ? 'l' : '-';
    gate.Pass();
  }
  EXPECT_EQ(client->Status(1), 0);
  EXPECT_EQ(seen, GetParam().expected);
  EXPECT_TRUE(server.Until("quantd_busy_cores", 0));
}

INSTANTIATE_TEST_SUITE_P(Calls, Where, testing::ValuesIn(Cases()),
                         [](const auto& case_info) { return case_info.param.name; });

// Work that was estimated short but takes long hands over the lead, and takes a core.
TEST(WhereAfterAll, WorkThatTakesLongLeavesItsLoop) {
  const TestServer server({"--event_loops=1"});
  const auto client = server.Connect();
  Gate gate;
  gate.Close();
  client->Say(transport::CallHead(1, Path("Quantize")));
  Send(*client, 1, Quantize(Floats({1'000})));
  ASSERT_TRUE(gate.Reached(1));
  EXPECT_TRUE(gate.led());
  EXPECT_EQ(server.Metric("quantd_busy_cores"), 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  gate.Open();
  EXPECT_EQ(client->Status(1), 0);
  EXPECT_TRUE(server.Until("quantd_busy_cores", 0));
}

}  // namespace
}  // namespace quantd::rpc
