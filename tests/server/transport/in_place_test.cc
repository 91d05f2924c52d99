// Large messages, which are read from the socket into their place, and frames that come between.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <string>
#include <utility>
#include <vector>

#include "world.h"

namespace quantd::transport {
namespace {

constexpr size_t kSize = 600'000;
constexpr size_t kSmallSize = 125'000;  // of malloc: AddressSanitizer sees late uses
constexpr size_t kFrame = 16'384;

// In this order: operands of + may be evaluated in any order.
std::string Join(std::initializer_list<std::string> parts) {
  std::string all;
  for (const std::string& part : parts) all += part;
  return all;
}

class InPlace : public testing::Test {
 protected:
  explicit InPlace(size_t size = kSize) : message_(Pattern(1, size)) {}
  // Begins the call. When this returns, its message has its place and may arrive whole, and a frame
  // of it has begun, the rest of which is read to that place.
  void SetUp() override {
    ASSERT_TRUE(client_.Heard());  // then the limits of frames are known
    left_ = Prefixed(message_);
    client_.Say(CallHead(1, "/t/Collect/a"));
    client_.Say(Regular(2));
    ASSERT_TRUE(client_.Heard());
    if (message_.size() == kSize) {
      ASSERT_TRUE(client_.Until([&] { return client_.stream(1).granted > 300'000; }));
    }
    begun_ = Regular(1);
    client_.Say(begun_.substr(0, 4'000));
    begun_.erase(0, 4'000);
    ASSERT_TRUE(client_.Taken());
  }
  // Sends the rest of the frame that has begun, and `bytes`, while the server does not read, so
  // that it reads them in as few pieces as possible.
  void SayAtOnce(const std::string& bytes) {
    ASSERT_LT(bytes.size(), 400U << 10) << "more than a socket takes";
    const World::Pause pause(world_);
    client_.Say(std::exchange(begun_, ""));
    client_.Say(bytes);
    ASSERT_TRUE(client_.Written());
  }
  std::string Take(size_t size) {
    const std::string part = left_.substr(0, size);
    left_.erase(0, size);
    return part;
  }
  // Frames of the usual size.
  std::string Regular(int frames) {
    std::string bytes;
    for (int i = 0; i < frames; ++i) bytes += Data(1, Take(kFrame));
    return bytes;
  }
  // Sends the rest, frame by frame; the call must see what was sent.
  void Finish() {
    ASSERT_TRUE(client_.Heard());
    while (!left_.empty()) {
      const std::string part = Take(100'000);
      client_.Say(Data(1, part, left_.empty()));
      ASSERT_TRUE(client_.Written());
    }
    EXPECT_EQ(client_.Status(1), 0);
    const Seen seen = world_.Over("/t/Collect/a");
    ASSERT_EQ(seen.messages.size(), 1U);
    EXPECT_TRUE(seen.messages[0] == message_);
  }

  // A whole message may be sent at once.
  World world_{World::Options{.budget = 128 << 20, .window = 256 << 10}};
  Client client_{world_.Connect()};
  const std::string message_;
  std::string left_;
  std::string begun_;  // the rest of a frame
};

TEST_F(InPlace, FramesThatChangeTheirSize) {
  std::string bytes = Regular(3);
  for (const size_t size : {1, 16'383, 16'385, 9, 0, 8, 4'095, 4'096, 30'000, 16'384, 60'000}) {
    bytes += Join({Data(1, Take(size)), Regular(1)});
  }
  SayAtOnce(bytes);
  Finish();
}

TEST_F(InPlace, OtherFramesBetween) {
  SayAtOnce(
      Join({Regular(3), Ping(1), Regular(1), WindowUpdate(1, 10), Regular(2), WindowUpdate(0, 10),
            Regular(1), Frame(200, 0, 0, "unknown"), Regular(2), Data(1, Take(kFrame), false, 255),
            Regular(1), Frame(kPriorityFrame, 0, 1, BigEndian(0, 5)), Regular(3)}));
  Finish();
  EXPECT_FALSE(client_.closed());
}

class InSmallPlace : public InPlace {
 protected:
  InSmallPlace() : InPlace(kSmallSize) {}
};

// The place is freed while bytes that were read into it have not been processed.
TEST_F(InSmallPlace, ResetBehindAPaddedFrame) {
  SayAtOnce(Data(1, Take(kFrame), false, 255));
  ASSERT_TRUE(client_.Heard());
  SayAtOnce(Join({Rst(1), CallHead(3, "/t/Collect/b"), Data(3, Prefixed("a message"), true)}));
  EXPECT_EQ(client_.Status(3), 0);
  EXPECT_EQ(world_.Over("/t/Collect/b").messages, std::vector<std::string>{"a message"});
  EXPECT_EQ(world_.Over("/t/Collect/a").interruption.code(), absl::StatusCode::kCancelled);
}

class Ends : public InSmallPlace, public testing::WithParamInterface<int> {};

// After every number of whole frames, and in the middle of one: every way to end a call, followed
// by bytes for other calls.
TEST_P(Ends, InTheMiddleOfAMessage) {
  const size_t way = GetParam() % 6;
  std::string bytes = Regular(GetParam() / 6 + 1);
  const std::string more = Take(kFrame);
  const std::string ends[] = {
      Rst(1),
      Data(1, "", true),
      // An empty block of trailers is as long as the head of the frame that is expected there.
      Frame(kHeadersFrame, kEndHeaders | kEndStream, 1, ""),
      Data(1, more, true),
      Data(1, more.substr(0, 77), true),
      Data(1, more).substr(0, 9'000),
  };
  bytes += ends[way];
  if (way == 5) {
    // The connection ends in the middle of a frame.
    SayAtOnce(bytes);
    shutdown(client_.fd(), SHUT_WR);
    EXPECT_EQ(world_.Over("/t/Collect/a").interruption.code(), absl::StatusCode::kCancelled);
    return;
  }
  const std::string other = Pattern(5, 100'000);
  bytes += CallHead(3, "/t/Collect/b") + DataFrames(3, Prefixed(other), kFrame, true);
  for (uint64_t i = 0; i < 50; ++i) bytes += Ping(i);
  SayAtOnce(bytes);
  EXPECT_EQ(client_.Status(3), 0);
  const Seen seen = world_.Over("/t/Collect/b");
  ASSERT_EQ(seen.messages.size(), 1U);
  EXPECT_TRUE(seen.messages[0] == other);
  EXPECT_EQ(world_.Over("/t/Collect/a").interruption.code(),
            way == 0 ? absl::StatusCode::kCancelled : absl::StatusCode::kInvalidArgument);
}

INSTANTIATE_TEST_SUITE_P(Ways, Ends, testing::Range(0, 18));

}  // namespace
}  // namespace quantd::transport
