// Large messages on one connection: they are let in one after the other, unless one takes long.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

#include "world.h"

namespace quantd::transport {
namespace {

constexpr size_t kWindow = 64 << 10;
constexpr size_t kFrame = 16'384;

class Uploads : public testing::Test {
 protected:
  // Two calls, of which the server has the first window.
  void SetUp() override {
    message_ = Pattern(1, 8 << 20);
    bytes_ = Prefixed(message_);
    began_at_ = std::chrono::steady_clock::now();
    client_.Say(CallHead(1, "/t/Collect/a") + CallHead(3, "/t/Collect/b"));
    for (const int32_t id : {1, 3}) {
      ASSERT_TRUE(client_.SayFrames(id, bytes_.substr(0, kWindow), kFrame, false));
    }
    ASSERT_TRUE(client_.Heard());
    EXPECT_GT(client_.stream(1).granted, 0);
    if (ExpectWaits(3)) {
      EXPECT_LT(world_.pool().used_bytes(), 2 * message_.size()) << "one has all of its memory";
    }
  }
  // Unless this test runs so slowly that the server may take the first upload for a slow one.
  bool ExpectWaits(int32_t id) {
    const bool waits = client_.stream(id).granted == 0;
    if (std::chrono::steady_clock::now() - began_at_ > std::chrono::milliseconds(9)) return false;
    EXPECT_TRUE(waits);
    return waits;
  }
  bool SayRest(int32_t id, size_t from = kWindow) {
    return client_.SayFrames(id, bytes_.substr(from), kFrame, true) && client_.Status(id) == 0;
  }
  // Whether the call has received its message.
  bool Received(const char* path) {
    const Seen seen = world_.Over(path);
    return seen.messages.size() == 1 && seen.messages[0] == message_;
  }

  std::chrono::steady_clock::time_point began_at_;
  World world_;
  Client client_{world_.Connect()};
  std::string message_;
  std::string bytes_;
};

TEST_F(Uploads, TheNextOneComesInOnceTheFirstHasAllItsWindow) {
  const size_t nearly = bytes_.size() - 1;
  ASSERT_TRUE(client_.SayFrames(1, bytes_.substr(kWindow, nearly - kWindow), kFrame, false));
  ASSERT_TRUE(client_.Heard());
  EXPECT_GT(client_.stream(3).granted, 0);
  EXPECT_TRUE(SayRest(3));
  EXPECT_TRUE(SayRest(1, nearly));
  EXPECT_TRUE(Received("/t/Collect/a"));
  EXPECT_TRUE(Received("/t/Collect/b"));
}

// It neither stands in the way of those that wait nor of later ones.
TEST_F(Uploads, OneThatStandsStillIsWaitedForOnlyBriefly) {
  ASSERT_TRUE(client_.Until([&] { return client_.stream(3).granted > 0; }));
  EXPECT_TRUE(SayRest(3));
  client_.Say(CallHead(5, "/t/Collect/c"));
  ASSERT_TRUE(client_.SayFrames(5, bytes_.substr(0, kWindow), kFrame, false));
  ASSERT_TRUE(client_.Heard());
  EXPECT_GT(client_.stream(5).granted, 0);
  EXPECT_TRUE(SayRest(5));
  EXPECT_TRUE(SayRest(1));
  EXPECT_TRUE(Received("/t/Collect/a"));
  EXPECT_TRUE(Received("/t/Collect/b"));
  EXPECT_TRUE(Received("/t/Collect/c"));
}

// Nor for one that sends just enough to seem alive.
TEST_F(Uploads, ADrippingOneIsWaitedForOnlyBriefly) {
  size_t sent = kWindow;
  int drops = 0;
  for (; client_.stream(3).granted == 0 && drops < 200; ++drops) {
    ASSERT_TRUE(client_.SayFrames(1, bytes_.substr(sent++, 1), 1, false));
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    client_.Pump(std::chrono::milliseconds(0));
  }
  EXPECT_LT(drops, 60) << "of 2 ms or more: it was waited for as long as for a quick one";
  EXPECT_TRUE(SayRest(3));
  EXPECT_TRUE(SayRest(1, sent));
}

TEST_F(Uploads, OneThatEndsMakesNobodyWait) {
  client_.Say(Rst(1));
  ASSERT_TRUE(client_.Heard());
  EXPECT_GT(client_.stream(3).granted, 0);
  EXPECT_TRUE(SayRest(3));
  EXPECT_TRUE(Received("/t/Collect/b"));
}

TEST_F(Uploads, SmallMessagesDoNotWait) {
  client_.Say(CallHead(5, "/t/Collect/c") + Data(5, Prefixed("small"), true));
  EXPECT_EQ(client_.Status(5), 0);
  ExpectWaits(3);
  EXPECT_TRUE(SayRest(1));
  EXPECT_TRUE(SayRest(3));
}

}  // namespace
}  // namespace quantd::transport
