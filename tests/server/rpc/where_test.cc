// Where a call computes: short work on the thread that leads its loop, long work on one that has
// given up the lead. For kinds that were not seen yet, estimates decide (costs.h).
#include <gtest/gtest.h>

#include <array>
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
      // A quarter of a nanosecond per byte; up to 300 us are short.
      OfQuantize("Small", Floats({3}), "l"),
      OfQuantize("BelowShort", Floats({299'000}), "l"),
      OfQuantize("AboveShort", Floats({301'000}), "-"),
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

// Requests that have all arrived: the client gets responses while others compute, and need not wait
// for all of them. They are of several kinds, because one that waited at the gate makes others of
// its kind count as long.
class Turns : public testing::TestWithParam<int64_t> {
 public:
  static std::string Request(int kind) {
    v1::DynamicQuantizeRequest request;
    *request.mutable_x() = Floats({GetParam()});
    request.set_output_type(
        std::array{v1::DATA_TYPE_UINT8, v1::DATA_TYPE_INT8, v1::DATA_TYPE_INT4}.at(kind));
    return request.SerializeAsString();
  }
};

TEST_P(Turns, SmallResponsesAreSentBeforeTheLastIsComputed) {
  const TestServer server;
  const auto client = server.Connect();
  ASSERT_TRUE(client->Heard());  // then its windows are known
  Gate gate;
  gate.Close();
  const auto say = [&](int32_t id, int kind) {
    client->Say(transport::CallHead(id, Path("DynamicQuantize")));
    // The loop that computes does not see window updates.
    for (int32_t window : {0, id}) client->Say(transport::WindowUpdate(window, 1 << 20));
    EXPECT_TRUE(client->SayFrames(id, transport::Prefixed(Request(kind)), 16'000, true));
    EXPECT_TRUE(client->Written());
  };
  say(1, 0);
  ASSERT_TRUE(gate.Reached(1));
  say(3, 1);
  say(5, 2);
  gate.Pass();
  ASSERT_TRUE(gate.Reached(2));
  gate.Pass();
  ASSERT_TRUE(gate.Reached(3));
  EXPECT_TRUE(gate.led());
  EXPECT_TRUE(client->Until([&] { return client->stream(3).ended; }));
  EXPECT_FALSE(client->stream(5).ended);
  gate.Pass();
  EXPECT_EQ(client->Status(5), 0);
}

INSTANTIATE_TEST_SUITE_P(Elements, Turns, testing::Values(1, 16'000));

// A kind that was estimated short, but took long, counts as long from then on.
TEST(Learned, WhatTookLongTakesACore) {
  const TestServer server;
  const auto client = server.Connect();
  Gate gate;
  int32_t id = 1;
  int kernels = 0;
  // Whether the computing thread led a loop meanwhile.
  const auto leads = [&] {
    gate.Close();
    client->Say(transport::CallHead(id, Path("Quantize")));
    Send(*client, id, Quantize(Floats({1'000})));
    EXPECT_TRUE(gate.Reached(++kernels));
    const bool led = gate.led();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    gate.Open();
    EXPECT_EQ(client->Status(id), 0);
    id += 2;
    return led;
  };
  EXPECT_TRUE(leads());
  EXPECT_FALSE(leads());
}

}  // namespace
}  // namespace quantd::rpc
