// Incoming messages: cut in every way, through every window, byte for byte.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "world.h"

namespace quantd::transport {
namespace {

constexpr size_t kWindow = 64 << 10;

std::string Path(absl::string_view method, size_t n) {
  return "/t/" + std::string(method) + "/" + std::to_string(n);
}

// The client is always ahead of the call: what waits stays within a window.
TEST(ReceivingStream, AClientThatIsAlwaysAheadTakesNoMoreThanItsWindow) {
  World::Options options;
  options.budget = 8 << 20;  // of which first windows have 1 MiB
  World world(options);
  Client client(world.Connect());
  const std::string path = "/t/Late/a";
  client.Say(CallHead(1, path));
  ASSERT_TRUE(client.Heard());
  const std::string message = Prefixed(Pattern(1, 1'000));
  std::string bytes;
  while (bytes.size() < (3 << 20)) bytes += message;
  uint64_t most = 0;
  const size_t step = 8 << 10;
  size_t said = 0;
  size_t released = 0;
  while (said < bytes.size()) {
    // As much as the window allows arrives, then one message is taken.
    const Client::Response& response = client.stream(1);
    ASSERT_FALSE(response.ended || client.closed())
        << response.Trailer("grpc-message") << " after " << said;
    const auto room = [&] {
      return static_cast<int64_t>(kWindow) + response.granted - static_cast<int64_t>(said);
    };
    if (room() > 0) {
      const std::string part = bytes.substr(said, std::min(step, static_cast<size_t>(room())));
      client.Say(Data(1, part));
      said += part.size();
      ASSERT_TRUE(client.Written());
    } else {
      released += 8;
      world.Release(path, 8);
      world.When(path, [&](const Seen& seen) {
        return seen.over || seen.messages.size() >= std::min(released, said / message.size());
      });
      ASSERT_TRUE(client.Heard());
    }
    most = std::max(most, world.receiving().held_bytes());
  }
  EXPECT_LE(most, 4 * kWindow);
  world.Release(path, 100'000);
  client.Say(Data(1, "", true));
  EXPECT_EQ(client.Status(1), 0);
  EXPECT_EQ(world.Over(path).messages.size(), bytes.size() / message.size());
}

TEST(ReceivingStream, RefusesWhatIsNoMessage) {
  World::Options options;
  options.limits.max_message_bytes = 1'000;
  World world(options);
  Client client(world.Connect());
  const std::string good = Prefixed("good");
  struct Case {
    std::string bytes;
    int status;
  };
  std::string compressed = good;
  compressed[0] = 1;
  std::string other = good;
  other[0] = static_cast<char>(0x80);
  const std::vector<Case> cases = {
      {compressed, 13},  // a flag without grpc-encoding: INTERNAL (gRPC's compression.md)
      {other, 13},
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
        const std::string path = Path("Collect", static_cast<size_t>(id));
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
      const std::string path = Path("Collect", static_cast<size_t>(id));
      const std::string message = Pattern(3, size);
      client.Say(Headers(id, CallFields(path, {{"grpc-timeout", timeout}})) +
                 DataFrames(id, Prefixed(message), 16'384, true));
      const int status = client.Status(id);
      EXPECT_TRUE(status == 4 || status == 0 || client.stream(id).reset.has_value()) << status;
      for (const std::string& seen : world.Over(path).messages) EXPECT_TRUE(seen == message);
      id += 2;
    }
  }
}

TEST(ReceivingStream, TakesNoMoreThanItsBudget) {
  World::Options options;
  options.budget = 1 << 20;
  options.window = 64 << 10;
  options.max_waiting = 2;
  options.limits.max_message_bytes = 800 << 10;
  World world(options);
  Client client(world.Connect());
  // Each announces a large message and sends little of it.
  int32_t id = 1;
  for (; id < 100; id += 2) {
    const std::string message = Prefixed(Pattern(1, 700 << 10));
    client.Say(CallHead(id, Path("Collect", static_cast<size_t>(id))));
    client.Say(DataFrames(id, message.substr(0, 40'000), 16'384));
    ASSERT_TRUE(client.Heard());
    EXPECT_LE(world.receiving().held_bytes(), options.budget);
  }
  int refused = 0;
  for (int32_t i = 1; i < id; i += 2) refused += client.stream(i).status() == 14 ? 1 : 0;
  EXPECT_GT(refused, 40);
  for (int32_t i = 1; i < id; i += 2) client.Say(Rst(i));
  ASSERT_TRUE(client.Heard());
  EXPECT_EQ(world.receiving().held_bytes(), 0U);
}

// The peer reads just enough for its resets to be processed, and too little for what follows.
TEST(ReceivingStream, UploadsThatAreResetAreFreedWhileTheirConnectionIsHeldBack) {
  constexpr uint16_t kInitialWindow = 4;
  World::Options options;
  options.socket_bytes = 4 << 10;
  World world(options);
  Client client(world.Connect(), {{kInitialWindow, 4 << 20}});
  client.grants = false;
  std::string resets;
  for (int32_t id = 3; id < 13; id += 2) {
    client.Say(CallHead(id, Path("Collect", static_cast<size_t>(id))));
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
