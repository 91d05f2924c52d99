// Incoming messages: cut in every way, through every window, byte for byte.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "world.h"

namespace quantd::transport {
namespace {

std::string Path(int32_t id) { return "/t/Collect/" + std::to_string(id); }

// The client is always ahead of the call: what waits stays within a window.
TEST(ReceivingStream, AClientThatIsAlwaysAheadTakesNoMoreThanItsWindow) {
  World world(World::Options{.budget = 8 << 20});  // of which first windows have 1 MiB
  Client client(world.Connect());
  const std::string path = "/t/Late/a";
  client.Say(CallHead(1, path));
  ASSERT_TRUE(client.Heard());
  const std::string message = Prefixed(Pattern(1, 1'000));
  std::string left;
  while (left.size() < (3 << 20)) left += message;
  const size_t messages = left.size() / message.size();
  uint64_t most = 0;
  size_t released = 0;
  while (!left.empty()) {
    // As much as the window allows arrives, then some messages are taken.
    ASSERT_FALSE(client.stream(1).ended || client.closed()) << left.size();
    if (const int64_t room = client.Room(1); room > 0) {
      const std::string part =
          left.substr(0, static_cast<size_t>(std::min<int64_t>(room, 8 << 10)));
      ASSERT_TRUE(client.SayFrames(1, part, part.size(), false));
      ASSERT_TRUE(client.Written());
      left.erase(0, part.size());
    } else {
      released = std::min(released + 8, messages - left.size() / message.size() - 1);
      world.Release(path, 8);
      world.When(path, [&](const Seen& seen) { return seen.messages.size() >= released; });
      ASSERT_TRUE(client.Heard());
    }
    most = std::max(most, world.receiving().held_bytes());
  }
  EXPECT_LE(most, 4 * (64U << 10));
  world.Release(path, 100'000);
  client.Say(Data(1, "", true));
  EXPECT_EQ(client.Status(1), 0);
  EXPECT_EQ(world.Over(path).messages.size(), messages);
}

TEST(ReceivingStream, RefusesWhatIsNoMessage) {
  World world(World::Options{.limits = {.max_message_bytes = 1'000}});
  Client client(world.Connect());
  const std::string good = Prefixed("good");
  struct Case {
    std::string bytes;
    int status;
  };
  const std::vector<Case> cases = {
      {"\1" + good.substr(1),
       13},  // a flag without grpc-encoding: INTERNAL (gRPC's compression.md)
      {"\x80" + good.substr(1), 13},
      {Prefixed(Pattern(1, 1'001)), 8},
      {std::string("\0\xFF\xFF\xFF\xFF", 5), 8},
      {good.substr(0, 3), 3},
      {good.substr(0, 7), 3},
      {good.substr(0, 5), 3},
      {Prefixed(Pattern(1, 1'000)), 0},
      {"", 0},
  };
  int32_t id = 1;
  for (const Case& one : cases) {
    for (const bool after_another : {false, true}) {
      for (const size_t frame : {1, 4, 2'000}) {
        const std::string path = Path(id);
        const std::string bytes = (after_another ? good : "") + one.bytes;
        client.Say(CallHead(id, path) + DataFrames(id, bytes, frame, true));
        EXPECT_EQ(client.Status(id), one.status) << absl::string_view(one.bytes).substr(0, 10);
        const Seen seen = world.Over(path);
        EXPECT_EQ(static_cast<int>(seen.interruption.code()), one.status);
        if (one.status == 0 && after_another) {
          EXPECT_EQ(seen.messages[0], "good");
        }
        id += 2;
      }
    }
  }
}

// The deadline has passed when the call begins, with its whole message there.
TEST(ReceivingStream, NoMessageIsReadFromAnInterruptedCall) {
  World world;
  Client client(world.Connect());
  int32_t id = 1;
  for (const char* timeout : {"0n", "0S", "1n", "1u", "50u"}) {
    for (const size_t size : {10, 50'000}) {
      const std::string message = Pattern(3, size);
      client.Say(Headers(id, CallFields(Path(id), {{"grpc-timeout", timeout}})) +
                 DataFrames(id, Prefixed(message), 16'384, true));
      const int status = client.Status(id);
      EXPECT_TRUE(status == 4 || status == 0 || client.stream(id).reset.has_value()) << status;
      for (const std::string& seen : world.Over(Path(id)).messages) EXPECT_TRUE(seen == message);
      id += 2;
    }
  }
}

// Each announces a large message and sends little of it.
TEST(ReceivingStream, WhatHasNoRoomIsRefused) {
  World world(World::Options{.budget = 1 << 20, .max_waiting = 2});
  Client client(world.Connect());
  const std::string begin = Prefixed(Pattern(1, 700 << 10)).substr(0, 40'000);
  for (int32_t id = 1; id < 100; id += 2) {
    client.Say(CallHead(id, Path(id)) + DataFrames(id, begin, 16'384));
    ASSERT_TRUE(client.Heard());
  }
  int refused = 0;
  for (int32_t id = 1; id < 100; id += 2) refused += client.stream(id).status() == 14 ? 1 : 0;
  EXPECT_GT(refused, 40);
}

// The peer reads just enough for its resets to be processed, and too little for what follows.
TEST(ReceivingStream, UploadsThatAreResetAreFreedWhileTheirConnectionIsHeldBack) {
  World world(World::Options{.socket_bytes = 4 << 10});
  Client client(world.Connect(), {{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 4 << 20}});
  client.grants = false;
  std::string resets;
  for (int32_t id = 3; id < 13; id += 2) {
    client.Say(CallHead(id, Path(id)));
    client.Say(Data(id, Prefixed(Pattern(1, 4 << 20)).substr(0, 10'000)));
    resets += Rst(id);
  }
  ASSERT_TRUE(client.Heard());
  ASSERT_GE(world.receiving().held_bytes(), 20U << 20);
  client.deaf = true;
  client.Say(WindowUpdate(0, 1 << 30) + CallHead(13, "/t/Send/1x1000000/a", true));
  ASSERT_TRUE(client.Taken());
  std::string flood;
  for (int i = 0; i < 300; ++i) flood += Ping(1);
  flood += resets;
  for (int i = 0; i < 2'500; ++i) flood += Ping(2);
  {
    const World::Pause pause(world);
    client.Say(flood);
    ASSERT_TRUE(client.Written());
  }
  world.Run([] {});
  ASSERT_GE(world.receiving().held_bytes(), 20U << 20) << "they are behind the first pings";
  client.deaf = false;
  ASSERT_TRUE(client.Until([&] { return world.receiving().held_bytes() < 4 << 20; }));
  client.deaf = true;
  world.Run([] {});
  EXPECT_LE(world.pool().used_bytes(), 2U << 20) << "the response";
  client.deaf = false;
  EXPECT_EQ(client.Status(13), 0);
}

}  // namespace
}  // namespace quantd::transport
