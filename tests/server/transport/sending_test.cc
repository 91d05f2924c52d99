// Responses: large and small, through windows of every size, and to clients that do not read.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "world.h"

namespace quantd::transport {
namespace {

constexpr uint16_t kInitialWindow = 4;

std::vector<std::string> Patterns(int count, size_t size) {
  std::vector<std::string> all;
  for (int i = 0; i < count; ++i) all.push_back(Pattern(static_cast<uint64_t>(i), size));
  return all;
}

TEST(SendingStream, ResponsesOfEverySize) {
  World world;
  Client client(world.Connect());
  int32_t id = 1;
  for (const size_t size : {0, 1, 4'090, 4'091, 4'092, 12'288, 16'379, 16'384, 65'530, 65'531,
                            262'144, 1'000'003, 5 << 20}) {
    for (const int count : {1, 2, 5}) {
      const std::string path = absl::StrCat("/t/Send/", count, "x", size, "/a");
      client.Say(CallHead(id, path, true));
      ASSERT_EQ(client.Status(id), 0) << path;
      ASSERT_EQ(client.stream(id).Messages(), Patterns(count, size)) << path;
      EXPECT_TRUE(world.Over(path).sent);
      EXPECT_EQ(world.Over(path).written, count);
      id += 2;
    }
  }
}

TEST(SendingStream, MadeAsItIsSent) {
  World world;
  Client client(world.Connect());
  int32_t id = 1;
  for (const size_t size : {5'001, 12'345, 65'536, 1'000'003, 5 << 20}) {
    for (const size_t part : {1'000, 16'379, 100'000, 262'144, 8 << 20}) {
      const std::string path = absl::StrCat("/t/Made/", size, "x", part, "/a");
      client.Say(CallHead(id, path, true));
      ASSERT_EQ(client.Status(id), 0) << path;
      ASSERT_EQ(client.stream(id).Messages(), Patterns(1, size)) << path;
      const Seen seen = world.Over(path);
      EXPECT_TRUE(seen.sent);
      EXPECT_EQ(seen.written, 1);
      EXPECT_EQ(static_cast<size_t>(seen.made), (size - 5'000 + part - 1) / part);
      id += 2;
    }
  }
}

// Little more is made than the peer takes.
TEST(SendingStream, NotMadeForWhoDoesNotRead) {
  World world;
  Client client(world.Connect(), {{kInitialWindow, 10'000}});
  client.grants = false;
  client.Say(CallHead(1, "/t/Made/1000000x4000/a", true));
  ASSERT_TRUE(client.Until([&] { return client.stream(1).data.size() == 10'000; }));
  ASSERT_TRUE(client.Heard());
  client.Say(Rst(1));
  ASSERT_TRUE(client.Heard());
  const Seen seen = world.Over("/t/Made/1000000x4000/a");
  EXPECT_FALSE(seen.sent);
  EXPECT_EQ(seen.written, 0);
  EXPECT_EQ(seen.made, 2);
  EXPECT_TRUE(absl::IsCancelled(seen.interruption)) << seen.interruption;
}

// No more is kept than what is being sent, and one part before and one behind it.
TEST(SendingStream, WhatIsMadeIsFreedWhenItIsSent) {
  World world;
  uint64_t most = 0;
  world.on_made = [&](int) { most = std::max(most, world.pool().used_bytes()); };
  Client client(world.Connect(), {{kInitialWindow, 4 << 20}});
  client.Say(WindowUpdate(0, 1 << 30) + CallHead(1, "/t/Made/50000000x262144/a", true));
  ASSERT_EQ(client.Status(1), 0);
  EXPECT_TRUE(client.stream(1).Messages() == Patterns(1, 50'000'000));
  world.Over("/t/Made/50000000x262144/a");
  EXPECT_GE(most, 262'144U);
  EXPECT_LE(most, kMostMadeAhead + 262'144);
}

TEST(SendingStream, WhatCanNotBeMadeIsReset) {
  World world;
  Client client(world.Connect());
  client.Say(CallHead(1, "/t/Made/1000000x0/a", true));
  ASSERT_TRUE(client.Until([&] { return client.stream(1).reset.has_value(); }));
  EXPECT_EQ(client.stream(1).data.size(), 5'005U);
  EXPECT_FALSE(world.Over("/t/Made/1000000x0/a").sent);
  // Only that call ends.
  client.Say(CallHead(3, "/t/Send/1x10/a", true));
  EXPECT_EQ(client.Status(3), 0);
}

// Also those on other connections, whose sockets must be polled; this connection never blocks.
TEST(SendingStream, OtherConnectionsGoOnWhileItIsMade) {
  World world;
  Client large(world.Connect());
  Client small(world.Connect());
  ASSERT_TRUE(small.Heard());
  int begun = 0;
  world.on_made = [&](int made) {
    if (made == 100) begun = world.When("/t/Send/1x10/b", [](const Seen&) { return true; }).begun;
    if (made != 10) return;
    small.Say(CallHead(1, "/t/Send/1x10/b", true));
    EXPECT_TRUE(small.Written());
  };
  large.Say(CallHead(1, "/t/Made/100000x100/a", true));
  EXPECT_EQ(large.Status(1), 0);
  EXPECT_EQ(world.Over("/t/Made/100000x100/a").made, 950);
  EXPECT_EQ(small.Status(1), 0);
  EXPECT_EQ(begun, 1) << "before a hundred parts were made";
}

// Frames behind it are counted, even if an iteration has made its parts and the socket is full.
TEST(SendingStream, RefusalsBehindWhatIsMadeAreCounted) {
  World world;
  Client client(world.Connect(), {{kInitialWindow, 1 << 30}});
  ASSERT_TRUE(client.Heard());
  client.deaf = true;
  client.Say(WindowUpdate(0, 1 << 30) + CallHead(1, "/t/Made/50000000x50000/a", true));
  ASSERT_TRUE(client.Written());
  world.When("/t/Made/50000000x50000/a", [](const Seen& seen) { return seen.begun == 1; });
  const std::string path = "/no/" + std::string(250, '%');  // three bytes each in the status text
  for (int32_t id = 3; id < 1'000; id += 2) client.Say(CallHead(id, path, true) + Rst(id));
  ASSERT_TRUE(client.Until([&] { return world.context().backlog.taken() > 60'000; }));
  EXPECT_LT(world.refused, 100);
}

TEST(SendingStream, ThousandsOfSmallAnswers) {
  World world;
  Client client(world.Connect());
  client.Say(CallHead(1, "/t/Small/5000x100/a", true));
  ASSERT_EQ(client.Status(1), 0);
  std::vector<std::string> expected;
  for (uint64_t i = 0; i < 5'000; ++i) expected.push_back(Pattern(i, 3 + i % 7));
  EXPECT_TRUE(client.stream(1).Messages() == expected);
}

// Windows that let a few bytes through at a time, and windows that end where a message ends.
TEST(SendingStream, WindowsOfEverySize) {
  for (const uint32_t window : {1, 2, 5, 6, 105, 210, 1'000, 65'535}) {
    World world;
    Client client(world.Connect(), {{kInitialWindow, window}});
    client.Say(CallHead(1, "/t/Send/2x100/a", true));
    ASSERT_EQ(client.Status(1), 0) << window;
    EXPECT_EQ(client.stream(1).Messages(), Patterns(2, 100));
  }
}

// Trailers need no window: they are sent after the last message.
TEST(SendingStream, TrailersNeedNoWindow) {
  for (const auto& [path, size] :
       {std::pair("/t/Send/1x100/a", 105U), std::pair("/t/Send/3x30/a", 105U),
        std::pair("/t/Small/3x1/a", 18U), std::pair("/t/Collect/a", 0U)}) {
    World world;
    Client client(world.Connect(), {{kInitialWindow, size}});
    client.grants = false;
    client.Say(CallHead(1, path, true));
    EXPECT_EQ(client.Status(1), 0) << path;
    EXPECT_EQ(client.stream(1).data.size(), size);
  }
}

// The client cancels in the middle of its response, after any number of bytes.
TEST(SendingStream, CancelledInTheMiddle) {
  World world;
  Client client(world.Connect());
  int32_t id = 1;
  for (const size_t after : {1, 10, 100'000, 400'000, 1'000'000}) {
    for (const bool half_closed : {false, true}) {
      const std::string path = "/t/Send/3x900000/" + std::to_string(id);
      client.Say(CallHead(id, path, half_closed));
      ASSERT_TRUE(client.Until([&] { return client.stream(id).data.size() >= after; }));
      client.Say(Rst(id));
      ASSERT_TRUE(client.Heard());
      const Seen seen = world.Over(path);
      EXPECT_EQ(seen.interruption.code(), absl::StatusCode::kCancelled);
      EXPECT_FALSE(seen.sent);
      id += 2;
    }
  }
  client.Say(CallHead(id, "/t/Send/2x70000/last", true));
  EXPECT_EQ(client.Status(id), 0);
  EXPECT_TRUE(client.stream(id).Messages() == Patterns(2, 70'000));
}

// The call is told at once that a small response is written; after that, its buffer is not counted.
TEST(SendingStream, ASmallAnswerThatWaitsKeepsNoLargeBuffer) {
  World world;
  Client client(world.Connect(), {{kInitialWindow, 0}});
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

// A client that reads nothing: while others wait, its responses are given up. So are the messages
// and the status of a call whose deadline has passed.
TEST(SendingStream, ResponsesThatStandStill) {
  World world(World::Options{.limits = {.stall = std::chrono::milliseconds(300)}});
  Client client(world.Connect(), {{kInitialWindow, 3}});
  client.grants = false;
  client.Say(CallHead(1, "/t/Send/1x100000/a", true));  // stuck at its window
  client.Say(CallHead(3, "/t/Small/9x100/b", true));    // has written its whole response
  client.Say(Headers(5, CallFields("/t/Echo/c", {{"grpc-timeout", "200m"}})));
  client.Say(Data(5, Prefixed("abc")));
  ASSERT_TRUE(client.Heard());
  EXPECT_FALSE(world.When("/t/Echo/c", [](const Seen& now) { return now.written == 1; }).over);
  world.anyone_waits = true;
  for (const auto& [id, path] : {std::pair(1, "/t/Send/1x100000/a"),
                                 std::pair(3, "/t/Small/9x100/b"), std::pair(5, "/t/Echo/c")}) {
    EXPECT_EQ(client.Status(id), -1);
    EXPECT_TRUE(client.stream(id).reset.has_value());
    EXPECT_FALSE(world.Over(path).sent);
  }
}

// A frame that nghttp2 has offered waits if enough frames are queued. Its bytes must be kept, also
// if its call ends before. That happens behind 32 calls: their frames of 16 KiB just fill the
// queue, and the socket takes less than one of them.
// With a window for all of its bytes they are sent, and its trailers need none.
TEST(SendingStream, AFrameThatWaitsKeepsItsBytes) {
  for (int i = 0; i < 10; ++i) {
    const int before = 30 + i / 2;
    const bool fits = i % 2 == 1;
    World world(World::Options{.socket_bytes = 4 << 10});
    Client client(world.Connect(), {{kInitialWindow, fits ? 105 : 20}});
    ASSERT_TRUE(client.Heard());
    const int last = 2 * before + 1;
    client.deaf = true;
    {
      const World::Pause pause(world);
      client.Say(WindowUpdate(0, 1 << 30));
      for (int32_t id = 1; id < last; id += 2) {
        client.Say(CallHead(id, "/t/Send/1x60000/" + std::to_string(id), true));
        client.Say(WindowUpdate(id, 1 << 20));
      }
      client.Say(Headers(last, CallFields("/t/Echo/a", {{"grpc-timeout", "50m"}})));
      client.Say(Data(last, Prefixed(Pattern(1, 100))));
      ASSERT_TRUE(client.Written());
    }
    EXPECT_EQ(world.When("/t/Echo/a", [](const Seen& now) { return now.ending; }).written, 1);
    client.deaf = false;
    for (int id = 1; id < last; id += 2) {
      ASSERT_EQ(client.Status(id), 0) << before << " " << id;
      EXPECT_TRUE(client.stream(id).Messages() == Patterns(1, 60'000));
    }
    const int status = client.Status(last);
    const std::string& data = client.stream(last).data;
    const bool whole = fits || data.empty();
    EXPECT_EQ(status, whole ? 4 : -1) << before << ": no status behind a part of a message";
    EXPECT_EQ(data, Prefixed(Pattern(1, 100)).substr(0, fits ? 105 : data.empty() ? 0 : 20));
    EXPECT_FALSE(client.closed());
    EXPECT_EQ(world.Over("/t/Echo/a").sent, whole);
  }
}

TEST(SendingStream, ClosedInTheMiddleOfWriting) {
  for (const int way : {0, 1, 2}) {
    World world;
    {
      Client client(world.Connect(), {{kInitialWindow, 1 << 30}});
      client.Say(WindowUpdate(0, 1 << 30) + CallHead(1, "/t/Send/40x1000000/a", true) +
                 CallHead(3, "/t/Echo/b") + Data(3, Prefixed("x")));
      ASSERT_TRUE(client.Until([&] { return client.stream(1).data.size() > 100'000; }));
      client.deaf = true;
      client.Pump();
      if (way == 1) shutdown(client.fd(), SHUT_RDWR);
      if (way == 2) world.Run([&] { world.set().Close(); });
    }
    EXPECT_FALSE(world.Over("/t/Send/40x1000000/a").sent);
    EXPECT_FALSE(world.Over("/t/Echo/b").sent);
    EXPECT_TRUE(world.Empty());
  }
}

}  // namespace
}  // namespace quantd::transport
