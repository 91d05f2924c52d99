// A Quantize that is computed while x arrives: its bytes are those of any other, whether the
// request ends as it was assumed to or not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "server/wire/writer.h"
#include "testing.h"

namespace quantd::rpc {
namespace {

using transport::CallFields;
using transport::Headers;

constexpr int64_t kRows = 257;
constexpr int64_t kColumns = 4109;
constexpr int64_t kElements = kRows * kColumns;

// Every row has its own scale, so that slices begin within rows.
v1::QuantizeRequest Request(v1::DataType output = v1::DATA_TYPE_UINT8, float scale = 1) {
  v1::QuantizeRequest request = Quantize(Floats({kRows, kColumns}));
  auto* const values = reinterpret_cast<float*>(request.mutable_x()->mutable_raw_data()->data());
  for (int64_t i = 0; i < kElements; ++i) values[i] = static_cast<float>(i % 977 - 488) / 7;
  *request.mutable_scale() = Floats({kRows});
  auto* const scales =
      reinterpret_cast<float*>(request.mutable_scale()->mutable_raw_data()->data());
  for (int64_t i = 0; i < kRows; ++i) scales[i] = scale * static_cast<float>(i % 31 + 1) / 16;
  request.set_axis(0);
  request.set_output_type(output);
  return request;
}

// As clients that write x first, and as those that write it last.
std::string XFirst(const v1::QuantizeRequest& request) { return request.SerializeAsString(); }
std::string XLast(const v1::QuantizeRequest& request) {
  v1::QuantizeRequest x, others = request;
  *x.mutable_x() = request.x();
  others.clear_x();
  return others.SerializeAsString() + x.SerializeAsString();
}

class ArrivingCodesTest : public testing::Test {
 protected:
  explicit ArrivingCodesTest(const std::vector<std::string>& flags = {})
      : server_(flags), client_(server_.Connect()) {}

  // Sends the first half of a message, and returns whether something is computed for it. No other
  // call holds memory then.
  bool BeginsEarly(const std::string& message) {
    id_ += 2;
    const std::string prefixed = transport::Prefixed(message);
    const size_t half = prefixed.size() / 2;
    client_->Say(Headers(id_, CallFields(Path("Quantize"))));
    EXPECT_TRUE(client_->SayFrames(id_, prefixed.substr(0, half), 16'000, false));
    EXPECT_TRUE(client_->Heard());
    rest_ = prefixed.substr(half);
    return server_.Metric("quantd_inflight_bytes") > 0;
  }
  // The same, where something should be. A busy machine may make an upload slow.
  bool BeginsEarlyOnce(const std::string& message) {
    for (int i = 0; !BeginsEarly(message); ++i) {
      if (i == 4) return false;
      client_->Say(transport::Rst(id_));
    }
    return true;
  }
  // Sends the second half, and returns y.
  std::string End() {
    EXPECT_TRUE(client_->SayFrames(id_, rest_, 16'000, true));
    EXPECT_EQ(client_->Status(id_), 0) << client_->stream(id_).Trailer("grpc-message");
    v1::QuantizeResponse response;
    EXPECT_TRUE(response.ParseFromString(client_->stream(id_).Messages()->at(0)));
    EXPECT_TRUE(server_.Until("quantd_inflight_requests", 0));
    EXPECT_TRUE(server_.Until("quantd_inflight_bytes", 0));
    return response.y().raw_data();
  }

  TestServer server_;
  std::unique_ptr<transport::Client> client_;
  int32_t id_ = -1;
  std::string rest_;
};

TEST_F(ArrivingCodesTest, WhereXComesLast) {
  for (const v1::DataType output :
       {v1::DATA_TYPE_UINT8, v1::DATA_TYPE_INT4, v1::DATA_TYPE_INT2, v1::DATA_TYPE_UINT16,
        v1::DATA_TYPE_FLOAT8E4M3FN, v1::DATA_TYPE_FLOAT6E2M3}) {
    const v1::QuantizeRequest request = Request(output);
    const bool early = output == v1::DATA_TYPE_UINT8 ? BeginsEarlyOnce(XLast(request))
                                                     : BeginsEarly(XLast(request));
    // Other kernels, and those of other builds, may have been found to be slow.
    EXPECT_TRUE(early || output != v1::DATA_TYPE_UINT8);
    EXPECT_TRUE(End() == Codes(request)) << output;
  }
}

TEST_F(ArrivingCodesTest, WhereScalesAreThoseOfTheLastTwo) {
  const v1::QuantizeRequest request = Request(), other = Request(v1::DATA_TYPE_UINT8, 2);
  const std::string codes = Codes(request), other_codes = Codes(other);
  ASSERT_NE(codes, other_codes);
  for (int i = 0; i < 2; ++i) {
    EXPECT_FALSE(BeginsEarly(XFirst(request))) << i;
    EXPECT_TRUE(End() == codes) << i;
  }
  const bool fast = BeginsEarlyOnce(XLast(request));
  EXPECT_TRUE(End() == codes);
  EXPECT_EQ(BeginsEarlyOnce(XFirst(request)), fast);
  EXPECT_TRUE(End() == codes);
  // The same size, another end.
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(i == 1 ? BeginsEarly(XFirst(other)) : BeginsEarlyOnce(XFirst(other)), fast && i != 1)
        << i;
    EXPECT_TRUE(End() == other_codes) << i;
  }
}

// What was assumed about x is not used for another x.
TEST_F(ArrivingCodesTest, NotWhereXComesTwice) {
  v1::QuantizeRequest request = Request(), other;
  other.mutable_x()->set_data_type(v1::DATA_TYPE_FLOAT);
  other.mutable_x()->set_raw_data(std::string(request.x().raw_data().size(), '\1'));
  const std::string message = XFirst(other) + XFirst(request);
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(BeginsEarly(message));
    EXPECT_TRUE(End() == Codes(request)) << i;
  }
}

// Fields of x behind its elements belong to the request, too.
TEST_F(ArrivingCodesTest, NotWhereXGoesOn) {
  const v1::QuantizeRequest request = Request();
  v1::QuantizeRequest others = request;
  v1::Tensor shape = request.x(), elements = request.x();
  others.clear_x();
  shape.clear_data_type();
  shape.clear_raw_data();
  elements.clear_shape();
  const std::string tensor = elements.SerializeAsString() + shape.SerializeAsString();
  std::string message = others.SerializeAsString();
  wire::AppendBytesField(v1::QuantizeRequest::kXFieldNumber, tensor, message);
  EXPECT_FALSE(BeginsEarly(message));
  EXPECT_TRUE(End() == Codes(request));
}

TEST_F(ArrivingCodesTest, AnInvalidRequestFailsAsEver) {
  v1::QuantizeRequest request = Request();
  request.mutable_scale()->mutable_raw_data()->replace(8, 4, 4, '\0');
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(BeginsEarly(i == 0 ? XLast(request) : XFirst(request)));
    EXPECT_TRUE(client_->SayFrames(id_, rest_, 16'000, true));
    EXPECT_EQ(client_->Status(id_), 3);
    EXPECT_THAT(client_->stream(id_).Trailer("grpc-message"), testing::HasSubstr("scale[2]"));
  }
}

TEST_F(ArrivingCodesTest, NothingIsKeptOfACallThatEnds) {
  EXPECT_TRUE(BeginsEarlyOnce(XLast(Request())));
  client_->Say(transport::Rst(id_));
  EXPECT_TRUE(client_->Heard());
  EXPECT_TRUE(server_.Until("quantd_inflight_bytes", 0));
}

// Others may want the memory, and a client may never send the rest.
TEST_F(ArrivingCodesTest, NothingIsKeptForAnUploadThatStandsStill) {
  EXPECT_TRUE(BeginsEarlyOnce(XLast(Request())));
  EXPECT_TRUE(server_.Until("quantd_inflight_bytes", 0));
  EXPECT_TRUE(End() == Codes(Request()));
}

// A response that is made while it is sent has little memory, but these codes are there.
TEST_F(ArrivingCodesTest, CodesAreInTheMemoryOfTheirRequest) {
  const std::string message = XLast(Request(v1::DATA_TYPE_UINT16));
  client_ = server_.Connect(100'000);
  client_->grants = false;
  ASSERT_TRUE(BeginsEarlyOnce(message));
  EXPECT_TRUE(client_->SayFrames(id_, rest_, 16'000, true));
  ASSERT_TRUE(client_->Until([&] { return client_->stream(id_).data.size() >= 50'000; }));
  EXPECT_GE(server_.Metric("quantd_inflight_bytes"),
            static_cast<double>(message.size()) + 2 * kElements);
  client_->Say(transport::Rst(id_));
  EXPECT_TRUE(client_->Heard());
  EXPECT_TRUE(server_.Until("quantd_inflight_bytes", 0));
}

// The second upload of a connection has memory for its beginning until the first one is complete.
TEST_F(ArrivingCodesTest, WhereTheMessageMoves) {
  const v1::QuantizeRequest request = Request();
  const std::string prefixed = transport::Prefixed(XLast(request));
  for (const int32_t id : {1, 3}) {
    client_->Say(Headers(id, CallFields(Path("Quantize"))));
    EXPECT_TRUE(client_->SayFrames(id, prefixed.substr(0, 200'000), 16'000, false));
    EXPECT_TRUE(client_->Heard());
  }
  for (const int32_t id : {1, 3}) {
    EXPECT_TRUE(client_->SayFrames(id, prefixed.substr(200'000), 16'000, true));
    ASSERT_EQ(client_->Status(id), 0);
    v1::QuantizeResponse response;
    ASSERT_TRUE(response.ParseFromString(client_->stream(id).Messages()->at(0)));
    EXPECT_TRUE(response.y().raw_data() == Codes(request)) << id;
  }
}

// y has a MiB and takes more than a sixteenth of the memory, unless it has 4 bits.
class ArrivingCodesLowMemoryTest : public ArrivingCodesTest {
 protected:
  ArrivingCodesLowMemoryTest() : ArrivingCodesTest({"--memory_budget_bytes=16000000"}) {}
};

TEST_F(ArrivingCodesLowMemoryTest, TakesASmallShareOfTheMemory) {
  const v1::QuantizeRequest request = Request();
  EXPECT_FALSE(BeginsEarly(XLast(request)));
  EXPECT_TRUE(End() == Codes(request));
  v1::QuantizeRequest four_bits = Request(v1::DATA_TYPE_INT4);
  EXPECT_TRUE(BeginsEarlyOnce(XLast(four_bits)));
  EXPECT_TRUE(End() == Codes(four_bits));
}

// A sixteenth of this is enough for one y, but not for two.
class ArrivingCodesShareTest : public ArrivingCodesTest {
 protected:
  ArrivingCodesShareTest() : ArrivingCodesTest({"--memory_budget_bytes=24000000"}) {}
};

// What a client does not read is in the memory of its request.
TEST_F(ArrivingCodesShareTest, AClientThatDoesNotReadKeepsNoneOfIt) {
  const std::string message = XLast(Request());
  const auto slow = server_.Connect(100'000);
  slow->grants = false;
  slow->Say(Headers(1, CallFields(Path("Quantize"))));
  SendBytes(*slow, 1, message);
  ASSERT_TRUE(slow->Until([&] { return slow->stream(1).data.size() >= 50'000; }));
  const double bytes = server_.Metric("quantd_inflight_bytes");
  EXPECT_GT(bytes, 0);
  bool more = false;
  for (int i = 0; i < 5 && !more; ++i) {
    BeginsEarly(message);
    more = server_.Metric("quantd_inflight_bytes") > bytes;
    client_->Say(transport::Rst(id_));
  }
  EXPECT_TRUE(more);
}

// The bytes that all calls have while `others` calls compute and one more, whose first half came
// before them, has arrived.
double BytesBeside(int others, const std::string& message) {
  const TestServer server({"--memory_budget_bytes=20000000"});
  Gate gate;
  gate.Close();
  const auto client = server.Connect();
  const std::string prefixed = transport::Prefixed(message);
  const size_t half = prefixed.size() / 2;
  client->Say(Headers(1, CallFields(Path("Quantize"))));
  EXPECT_TRUE(client->SayFrames(1, prefixed.substr(0, half), 16'000, false));
  EXPECT_TRUE(client->Heard());
  v1::QuantizeRequest other = Request();
  other.set_report_error(true);
  for (int i = 0; i < others; ++i) {
    client->Say(Headers(3 + 2 * i, CallFields(Path("Quantize"))));
    Send(*client, 3 + 2 * i, other);
  }
  EXPECT_TRUE(server.Until("quantd_inflight_requests", others));
  EXPECT_TRUE(client->SayFrames(1, prefixed.substr(half), 16'000, true));
  EXPECT_TRUE(client->Heard());
  EXPECT_TRUE(server.Until("quantd_inflight_requests", 3));
  return server.Metric("quantd_inflight_bytes");
}

// The request needs all of the memory, and nothing may wait.
TEST(ArrivingCodesOfTheLargest, AreGivenUpForIt) {
  v1::QuantizeRequest request = Request(v1::DATA_TYPE_INT2);
  const TestServer server({"--memory_budget_bytes=4600000", "--max_queued_requests=0"});
  const auto client = server.Connect();
  for (const int32_t id : {1, 3}) {
    client->Say(Headers(id, CallFields(Path("Quantize"))));
    SendBytes(*client, id, XLast(request));
    EXPECT_EQ(client->Status(id), 0) << client->stream(id).Trailer("grpc-message");
  }
}

TEST(ArrivingCodesBesideOthers, NothingIsKeptThatIsNotSent) {
  const v1::QuantizeRequest request = Request();
  for (const int others : {2, 3}) {  // with three others, it waits for memory
    EXPECT_EQ(BytesBeside(others, XLast(request)), BytesBeside(others, XFirst(request))) << others;
  }
}

}  // namespace
}  // namespace quantd::rpc
