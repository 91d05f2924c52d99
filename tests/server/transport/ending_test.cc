// How calls end: refused, interrupted, cancelled, displaced; also those whose responses wait.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/transport/encoding.h"
#include "server/transport/frame_credit.h"
#include "world.h"

namespace quantd::transport {
namespace {

TEST(Ending, RefusesWhatIsNoCall) {
  struct Row {
    Fields head;
    int status;
    std::string http;
    std::string data;
  };
  const auto with = [](size_t field, const char* value) {
    Fields fields = CallFields("/t/Collect/a");
    fields[field].second = value;
    return fields;
  };
  const std::string text = "This port speaks gRPC: POST, application/grpc.\n";
  const std::vector<Row> rows = {
      {with(0, "GET"), -1, "405", text},
      {with(0, "HEAD"), -1, "405", ""},
      {with(4, "application/json"), -1, "415", text},
      {CallFields("/no"), 12, "200", ""},
      {CallFields("/t/Collect/a", {{"grpc-encoding", "snappy"}}), 12, "200", ""},
      {CallFields("/t/Collect/a", {{"grpc-timeout", "1x"}}), 3, "200", ""},
      {CallFields("/t/Collect/a"), 0, "200", ""},
  };
  World world;
  Client client(world.Connect());
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto id = static_cast<int32_t>(2 * i + 1);
    client.Say(Headers(id, rows[i].head, true));
    EXPECT_EQ(client.Status(id), rows[i].status) << i;
    EXPECT_EQ(client.stream(id).headers[0].second, rows[i].http) << i;
    EXPECT_EQ(client.stream(id).data, rows[i].data) << i;
  }
  EXPECT_EQ(client.stream(9).Trailer("grpc-accept-encoding"), kEncodings);
}

// Calls that were under way when the client was told to go are answered; then the connection ends.
TEST(Ending, ADrainLosesNoCall) {
  World world;
  Client client(world.Connect());
  client.Say(CallHead(1, "/t/Collect/a"));
  ASSERT_TRUE(client.Heard());
  world.Run([&] { world.set().GoAway(); });
  ASSERT_TRUE(client.Until([&] { return client.gone_away(); }));
  client.Say(CallHead(3, "/t/Echo/b") + Data(3, Prefixed("x"), true));
  EXPECT_EQ(client.Status(3), 0);
  EXPECT_FALSE(client.closed());
  client.Say(Data(1, Prefixed("z"), true));
  EXPECT_EQ(client.Status(1), 0);
  EXPECT_TRUE(client.Until([&] { return client.closed(); }));
}

// A deadline, and the end of a drain: clients are told DEADLINE_EXCEEDED or UNAVAILABLE, never
// CANCELLED, whatever their calls wait for.
TEST(Ending, CallsThatWaitTellWhyTheyEnd) {
  for (const bool late : {true, false}) {
    const auto head = [late](int32_t id, const char* path) {
      return Headers(id, CallFields(path, {{"grpc-timeout", late ? "50m" : "1H"}}));
    };
    World world;
    Client client(world.Connect());
    client.Say(head(1, "/t/Collect/a") + Data(1, Prefixed("x")) +         // between messages
               head(3, "/t/Collect/b") + Data(3, std::string(2, '\0')) +  // in a message's length
               head(5, "/t/Wait/c") + Data(5, Prefixed("x"), true) + head(7, "/t/Collect/d"));
    ASSERT_TRUE(client.Heard());
    if (!late) world.Run([&] { world.set().EndCalls(absl::UnavailableError("go")); });
    for (const int32_t id : {1, 3, 5, 7}) EXPECT_EQ(client.Status(id), late ? 4 : 14) << id;
    EXPECT_EQ(world.Over("/t/Wait/c").interruption.code(),
              late ? absl::StatusCode::kDeadlineExceeded : absl::StatusCode::kUnavailable);
  }
}

// Responses that wait for the peer's window do not delay the end: trailers need no window. If part
// of a message is already sent, the end is a reset.
TEST(Ending, CallsWhoseAnswersWaitForAWindowEndAllTheSame) {
  for (const bool elsewhere : {true, false}) {
    for (const uint32_t window : {0U, 7U, 15U, 20U}) {
      SCOPED_TRACE(window);
      World world;
      Client client(world.Connect(), {{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, window}});
      client.grants = false;
      // Two messages of 15 bytes, the second one behind the first.
      client.Say(CallHead(1, "/t/Echo/a") + Data(1, Prefixed("0123456789")));
      ASSERT_TRUE(client.Heard());
      client.Say(Data(1, Prefixed("0123456789")));
      ASSERT_TRUE(client.Heard());
      world.When("/t/Echo/a", [](const Seen& seen) { return seen.written == 2; });
      ASSERT_TRUE(client.Until([&] { return client.stream(1).data.size() == window; }));
      const absl::Status why = elsewhere ? absl::UnavailableError("") : absl::CancelledError("");
      world.Run([&] { world.set().EndCalls(why); });
      const int status = client.Status(1);
      const Client::Response& response = client.stream(1);
      if (window % 15 == 0) {
        EXPECT_EQ(status, elsewhere ? 14 : 1);
      } else {
        EXPECT_EQ(response.reset, elsewhere ? 7U : 8U);  // REFUSED_STREAM, CANCEL
      }
      EXPECT_EQ(response.data.size(), window);
      world.Over("/t/Echo/a");
      EXPECT_TRUE(client.Heard());
      EXPECT_FALSE(client.closed());
    }
  }
}

// Where there is room, no response is lost.
TEST(Ending, AnswersThatTheWindowLetsOutComeBeforeTheEnd) {
  World world;
  Client client(world.Connect());
  std::string bytes = CallHead(1, "/t/Echo/a");
  for (int i = 0; i < 100; ++i) bytes += Data(1, Prefixed("0123456789"));
  bytes += Data(1, "\7");  // not a valid flag of a message
  bytes += Data(1, std::string(4, '\0'));
  {
    const World::Pause pause(world);
    client.Say(bytes);
    ASSERT_TRUE(client.Written());
  }
  EXPECT_EQ(client.Status(1), 13);
  EXPECT_EQ(client.stream(1).data.size(), 15U * world.Over("/t/Echo/a").messages.size());
}

// The connection's window counts as well.
TEST(Ending, TheConnectionsWindowHoldsNoEnd) {
  World world;
  Client client(world.Connect());
  client.grants = false;
  client.Say(CallHead(1, "/t/Send/1x100000/a"));
  ASSERT_TRUE(client.Until([&] { return client.stream(1).data.size() == 65'535; }));
  client.Say(Headers(3, CallFields("/t/Echo/b", {{"grpc-timeout", "1S"}})) +
             Data(3, Prefixed("0123456789")));
  EXPECT_EQ(client.Status(3), 4);
  EXPECT_EQ(world.Over("/t/Echo/b").written, 1);
  EXPECT_TRUE(client.stream(3).data.empty());
}

TEST(Ending, CancelsAtOnceCostNoCall) {
  World world;
  Client client(world.Connect());
  std::string bytes;
  for (int32_t id = 1; id < 1'000; id += 2) bytes += CallHead(id, "/t/Wait/a") + Rst(id);
  {
    const World::Pause pause(world);
    client.Say(bytes);
    ASSERT_TRUE(client.Written());
  }
  ASSERT_TRUE(client.Heard());
  client.Say(CallHead(1'001, "/t/Echo/b", true));
  EXPECT_EQ(client.Status(1'001), 0);
  EXPECT_EQ(world.When("/t/Wait/a", [](const Seen&) { return true; }).begun, 0);
}

TEST(Ending, SmallMessagesThatAreAnsweredAreNoFlood) {
  World world;
  Client client(world.Connect());
  client.Say(CallHead(1, "/t/Echo/a"));
  constexpr int kMessages = 5 * static_cast<int>(FrameCredit::kMost);
  constexpr int kAtOnce = 100;
  for (int sent = 0; sent < kMessages; sent += kAtOnce) {
    std::string bytes;
    for (int i = 0; i < kAtOnce; ++i) bytes += Data(1, Prefixed("x"), false);
    client.Say(bytes);
    const size_t responses = (sent + kAtOnce) * Prefixed("x").size();
    ASSERT_TRUE(client.Until([&] { return client.stream(1).data.size() == responses; })) << sent;
  }
  EXPECT_EQ(world.context().counters.abuse(AbuseAction::kConnectionThrottled), 0U);
  client.Say(Data(1, "", true));
  EXPECT_EQ(client.Status(1), 0);
}

// Whatever they sent: nothing, a part of a message, or a request whose answer they do not read.
TEST(Ending, CallsThatStandStillLoseTheirPlaceInAFullTable) {
  World world(World::Options{.limits = {.max_calls = 10, .stall = std::chrono::milliseconds(300)}});
  Client greedy(world.Connect(1), {{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0}});
  Client modest(world.Connect(3));
  for (int32_t id = 1; id < 20; id += 2) {
    greedy.Say(CallHead(id, "/t/Echo/greedy"));
    if (id % 4 == 1) greedy.Say(Data(id, Prefixed("xyz").substr(0, id % 8 == 1 ? 3 : 8), false));
  }
  ASSERT_TRUE(greedy.Heard());
  EXPECT_EQ(greedy.Status(17), 8);  // RESOURCE_EXHAUSTED: eight of ten are its share
  EXPECT_EQ(greedy.Status(19), 8);
  const auto echo = [&modest](int32_t id) {
    modest.Say(CallHead(id, "/t/Echo/a") + Data(id, Prefixed("x"), true));
    return modest.Status(id);
  };
  EXPECT_EQ(echo(1), 0);
  const Counters& counters = world.context().counters;
  EXPECT_EQ(counters.abuse(AbuseAction::kCallEvicted), 0U) << "nobody had to go for it";
  modest.Say(CallHead(3, "/t/Collect/3") + CallHead(5, "/t/Collect/5"));
  int32_t id = 7;
  while (echo(id) == 14 && id < 20'000) id += 2;
  EXPECT_EQ(modest.stream(id).status(), 0);
  EXPECT_GE(counters.abuse(AbuseAction::kCallEvicted) + counters.abuse(AbuseAction::kAnswerStalled),
            1U);
}

}  // namespace
}  // namespace quantd::transport
