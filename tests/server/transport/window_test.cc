// How calls end whose responses wait for the peer's flow-control window.
#include <gtest/gtest.h>

#include <string>

#include "world.h"

namespace quantd::transport {
namespace {

constexpr uint16_t kSettingsInitialWindow = 4;

// Responses that wait for the peer's window do not delay the end: trailers need no window. If part
// of a message is already sent, the end is a reset.
TEST(Window, CallsWhoseAnswersWaitForAWindowEndAllTheSame) {
  for (const bool elsewhere : {true, false}) {
    for (const uint32_t window : {0U, 7U, 15U, 20U}) {
      SCOPED_TRACE(window);
      World world;
      Client client(world.Connect(), {{kSettingsInitialWindow, window}});
      client.grants = false;
      // Two messages of 15 bytes, the second one behind the first.
      client.Say(CallHead(1, "/t/Echo/a") + Data(1, Prefixed("0123456789")));
      ASSERT_TRUE(client.Heard());
      client.Say(Data(1, Prefixed("0123456789")));
      ASSERT_TRUE(client.Heard());
      world.When("/t/Echo/a", [](const Seen& seen) { return seen.written == 2; });
      ASSERT_TRUE(client.Until([&] { return client.stream(1).data.size() == window; }));
      world.Run([&] {
        world.set().EndCalls(elsewhere ? absl::UnavailableError("go")
                                       : absl::CancelledError("end"));
      });
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
TEST(Window, AnswersThatTheWindowLetsOutComeBeforeTheEnd) {
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
TEST(Window, TheConnectionsWindowHoldsNoEnd) {
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

// The call is told at once that a small response is written; after that, its buffer is not counted.
TEST(Window, ASmallAnswerThatWaitsKeepsNoLargeBuffer) {
  World world;
  Client client(world.Connect(), {{kSettingsInitialWindow, 0}});
  client.Say(CallHead(1, "/t/Small/1x100/a", true));
  ASSERT_TRUE(client.Heard());
  world.When("/t/Small/1x100/a", [](const Seen& seen) { return seen.written == 1; });
  world.Run([] {});
  EXPECT_EQ(world.pool().used_bytes(), 0U);
  EXPECT_FALSE(client.stream(1).ended);
  client.Say(WindowUpdate(1, 2));
  ASSERT_TRUE(client.Until([&] { return client.stream(1).data.size() == 2; }));
  client.Say(WindowUpdate(1, 6));
  EXPECT_EQ(client.Status(1), 0);
  EXPECT_EQ(client.stream(1).data, Prefixed(Pattern(0, 3)));
  EXPECT_TRUE(world.Over("/t/Small/1x100/a").sent);
}

}  // namespace
}  // namespace quantd::transport
