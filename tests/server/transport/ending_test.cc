// How calls and connections end: drains, half-closed streams, deadlines, floods, broken rules.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "server/transport/encoding.h"
#include "server/transport/frame_credit.h"
#include "world.h"

namespace quantd::transport {
namespace {

TEST(Ending, RefusesWhatIsNoCall) {
  World world;
  Client client(world.Connect());
  Fields no_post = CallFields("/t/Collect/a");
  no_post[0].second = "GET";
  Fields no_grpc = CallFields("/t/Collect/a");
  no_grpc[4].second = "application/json";
  client.Say(Headers(1, no_post, true) + Headers(3, no_grpc, true) + CallHead(5, "/no", true) +
             Headers(7, CallFields("/t/Collect/a", {{"grpc-encoding", "snappy"}}), true) +
             Headers(9, CallFields("/t/Collect/a", {{"grpc-timeout", "1x"}}), true) +
             CallHead(13, "/t/Collect/b", true));
  no_post[0].second = "HEAD";
  client.Say(Headers(15, no_post, true));
  EXPECT_EQ(client.Status(13), 0);
  EXPECT_EQ(client.Status(1), -1);
  EXPECT_EQ(client.stream(1).Trailer(":status"), "405");
  EXPECT_EQ(client.Status(3), -1);
  EXPECT_EQ(client.stream(3).Trailer(":status"), "415");
  EXPECT_EQ(client.stream(3).data, "This port speaks gRPC: POST, application/grpc.\n");
  EXPECT_EQ(client.Status(15), -1);
  EXPECT_EQ(client.stream(15).Trailer(":status"), "405");
  EXPECT_EQ(client.stream(15).data, "");
  EXPECT_EQ(client.Status(5), 12);
  EXPECT_EQ(client.Status(7), 12);
  EXPECT_EQ(client.stream(7).Trailer("grpc-accept-encoding"), kEncodings);
  EXPECT_EQ(client.Status(9), 3);
}

// Refused while its upload goes on: the rest is dropped, and other calls go on.
TEST(Ending, WhatARefusedCallStillSendsIsDropped) {
  World world;
  Client client(world.Connect());
  ASSERT_TRUE(client.Heard());
  std::string bytes;
  for (int32_t id = 1; id < 60; id += 2) {
    bytes += CallHead(id, "/no") + DataFrames(id, Prefixed(Pattern(1, 30'000)), 7'000) +
             (id % 4 == 1 ? Data(id, "", true) : Rst(id));
  }
  bytes += CallHead(61, "/t/Echo/a") + Data(61, Prefixed("x"), true);
  client.Say(bytes);
  EXPECT_EQ(client.Status(61), 0);
  for (int32_t id = 1; id < 60; id += 4) EXPECT_EQ(client.Status(id), 12);
}

// Calls that were made before the client learned of the GOAWAY are answered; the connection closes
// after the last.
TEST(Ending, ADrainLosesNoCall) {
  World world;
  Client client(world.Connect());
  client.answers_pings = false;
  client.Say(CallHead(1, "/t/Collect/a"));
  ASSERT_TRUE(client.Heard());
  world.Run([&] { world.set().GoAway(); });
  ASSERT_TRUE(client.Until([&] { return client.gone_away().size() == 1; }));
  EXPECT_EQ(client.gone_away()[0].last, 0x7FFFFFFFU);
  // The client made these before it read the GOAWAY.
  client.Say(CallHead(3, "/t/Echo/b") + Data(3, Prefixed("x")));
  client.answers_pings = true;
  client.Say(Frame(kPingFrame, kAck, 0, std::string(8, '\0')));
  ASSERT_TRUE(client.Heard());
  EXPECT_EQ(client.gone_away().size(), 1U);
  // It made this one afterwards; it is also answered, as long as another one is under way.
  client.Say(CallHead(5, "/t/Echo/c") + Data(5, Prefixed("y"), true));
  EXPECT_EQ(client.Status(5), 0);
  client.Say(Data(1, Prefixed("z"), true));
  EXPECT_EQ(client.Status(1), 0);
  ASSERT_TRUE(client.Heard());
  EXPECT_FALSE(client.closed());
  client.Say(Data(3, "", true));
  EXPECT_EQ(client.Status(3), 0);
  EXPECT_TRUE(client.Until([&] { return client.closed(); }));
  ASSERT_EQ(client.gone_away().size(), 2U);
  EXPECT_EQ(client.gone_away()[1].last, 5U);
  EXPECT_EQ(client.gone_away()[1].code, 0U);
}

// At the end of a drain clients are told UNAVAILABLE, never CANCELLED, whatever their calls do.
TEST(Ending, EndCallsTellsEveryClientWhy) {
  World world;
  Client client(world.Connect());
  client.Say(CallHead(1, "/t/Collect/a") + Data(1, Prefixed("x")) +  // between messages
             CallHead(3, "/t/Collect/b") + Data(3, "\0") +           // in a message's length
             CallHead(5, "/t/Wait/c") + Data(5, Prefixed("x"), true) + CallHead(7, "/t/Collect/d"));
  client.Say(Data(3, std::string(2, '\0')));
  ASSERT_TRUE(client.Heard());
  world.When("/t/Collect/a", [](const Seen& seen) { return seen.messages.size() == 1; });
  world.Run([] {});
  world.Run([&] { world.set().EndCalls(absl::UnavailableError("go")); });
  for (const int32_t id : {1, 3, 5, 7}) EXPECT_EQ(client.Status(id), 14) << id;
}

TEST(Ending, DeadlinesEndCallsThatWait) {
  World world;
  Client client(world.Connect());
  client.Say(Headers(1, CallFields("/t/Collect/a", {{"grpc-timeout", "50m"}})) +
             Headers(3, CallFields("/t/Wait/b", {{"grpc-timeout", "50000u"}})) +
             Data(3, Prefixed("x")));
  EXPECT_EQ(client.Status(1), 4);
  EXPECT_EQ(client.Status(3), 4);
  EXPECT_EQ(world.Over("/t/Collect/a").interruption.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(world.Over("/t/Wait/b").interruption.code(), absl::StatusCode::kDeadlineExceeded);
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
  World::Options options;
  options.limits.max_calls = 10;
  options.limits.stall = std::chrono::milliseconds(300);
  World world(options);
  Client greedy(world.Connect(1), {{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0}});
  Client other(world.Connect(2));
  Client modest(world.Connect(3));
  for (int32_t id = 1; id < 14; id += 2) {
    greedy.Say(CallHead(id, "/t/Echo/greedy"));
    if (id % 4 == 1) greedy.Say(Data(id, Prefixed("xyz").substr(0, id % 8 == 1 ? 3 : 8), false));
  }
  for (int32_t id = 1; id < 6; id += 2) other.Say(CallHead(id, "/t/Collect/other"));
  ASSERT_TRUE(greedy.Heard());
  ASSERT_TRUE(other.Heard());
  int32_t id = 1;
  do {
    modest.Say(CallHead(id, "/t/Echo/a") + Data(id, Prefixed("x"), true));
    id += 2;
  } while (modest.Status(id - 2) == 14 && id < 20'000);
  EXPECT_EQ(modest.Status(id - 2), 0);
  for (int i = 0; i < 9; ++i) {
    modest.Say(CallHead(id, "/t/Echo/a") + Data(id, Prefixed("x"), true));
    EXPECT_EQ(modest.Status(id), 0);
    id += 2;
  }
  EXPECT_GE(world.context().counters.abuse(AbuseAction::kCallEvicted) +
                world.context().counters.abuse(AbuseAction::kAnswerStalled),
            1U);
}

TEST(Ending, TheLastQuarterOfTheCallsIsNeverOnePeers) {
  World::Options options;
  options.limits.max_calls = 10;
  World world(options);
  Client greedy(world.Connect(1));
  Client modest(world.Connect(3));
  for (int32_t id = 1; id < 20; id += 2) greedy.Say(CallHead(id, "/t/Collect/greedy"));
  ASSERT_TRUE(greedy.Heard());
  EXPECT_EQ(greedy.Status(17), 8);  // RESOURCE_EXHAUSTED: eight of ten are its share
  EXPECT_EQ(greedy.Status(19), 8);
  modest.Say(CallHead(1, "/t/Echo/a") + Data(1, Prefixed("x"), true));
  EXPECT_EQ(modest.Status(1), 0);
  EXPECT_EQ(world.context().counters.abuse(AbuseAction::kCallEvicted), 0U)
      << "nobody had to go for it";
}

}  // namespace
}  // namespace quantd::transport
