// What a connection may receive, and how much may wait for its peer.
#include "server/transport/flow_control.h"

#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "../loop/loop_testing.h"
#include "frames.h"

namespace quantd::transport {
namespace flow_control_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class NoCalls final : public CallHandler {
 public:
  int Find(absl::string_view) const override { return -1; }
  void Begin(ServerCall&) override {}
  wire::CallStatus Refuse(const ServerCall&, int, const absl::Status&) const override { return {}; }
  bool AnyoneWaits() const override { return false; }
};

class TestConnection final : public scheduling::Holder {
 public:
  TestConnection(TransportContext& context, loop::LedLoop& loop, uint64_t peer,
                 loop::Clock::time_point now)
      : Holder(*loop, peer, now), flow(context, *this, now) {}
  bool lost = false;
  FlowControl flow;

 private:
  void OnDisplaced() override { lost = true; }
};

class FlowControlTest : public testing::Test {
 protected:
  explicit FlowControlTest(const Limits& limits = {})
      : context_{calls_, pool_, receiving_, limits} {}
  TestConnection& Connect(uint64_t peer = 1, loop::Clock::duration still = {}) {
    return connections_.emplace_back(context_, loop_, peer, start_ - still);
  }
  void TearDown() override {
    for (TestConnection& connection : connections_) connection.flow.Close();
    loop::RunOn(*loop_, [] {});
    EXPECT_EQ(context_.backlog.taken(), 0U);
    EXPECT_EQ(context_.counters.throttled_now, 0);
  }
  // Whether the connection may have so many bytes of the backlog.
  bool Waits(TestConnection& connection, size_t bytes) const {
    return connection.flow.Charge(bytes, 0, walk_, true);
  }

  NoCalls calls_;
  memory::Pool pool_;
  admission::Receiving receiving_{64 << 20, 64 << 10, 100};
  TransportContext context_;
  loop::LedLoop loop_;
  const loop::Clock::time_point start_ = loop::Clock::now();
  FrameWalk walk_;
  std::deque<TestConnection> connections_;
};

TEST_F(FlowControlTest, IsHeldBackUntilHalfIsSent) {
  FlowControl& flow = Connect().flow;
  EXPECT_FALSE(flow.BackedUp(64 << 10, 200));
  EXPECT_TRUE(flow.BackedUp((64 << 10) + 1, 0));
  EXPECT_TRUE(flow.BackedUp(0, 201)) << "twice as many calls as it may have";
  flow.HoldBack(reinterpret_cast<const uint8_t*>("rest"), 4, start_);
  EXPECT_FALSE(flow.may_read());
  EXPECT_FALSE(flow.LetGo((32 << 10) + 1, 0));
  EXPECT_FALSE(flow.LetGo(0, 201));
  EXPECT_TRUE(flow.LetGo(32 << 10, 200));
  EXPECT_FALSE(flow.LetGo(0, 0)) << "it is read already";
  EXPECT_TRUE(flow.may_read());
  EXPECT_EQ(flow.TakeKept(), "rest");
  EXPECT_EQ(flow.kept(), "");
}

TEST_F(FlowControlTest, IsClosedIfThePeerTakesTooLittleOfIt) {
  FlowControl& flow = Connect().flow;
  EXPECT_EQ(flow.Look(start_ + seconds(9), walk_), std::nullopt);
  flow.HoldBack(nullptr, 0, start_ + seconds(9));
  flow.Wrote(64 << 10, start_ + seconds(11));  // a second's
  EXPECT_EQ(flow.Look(start_ + seconds(15), walk_), std::nullopt);
  EXPECT_EQ(flow.Look(start_ + milliseconds(15'001), walk_), ConnectionEnd::kUnread);
  flow.Wrote(64 << 20, start_ + seconds(16));
  EXPECT_EQ(flow.Look(start_ + seconds(21), walk_), std::nullopt);
  EXPECT_EQ(flow.Look(start_ + milliseconds(21'001), walk_), ConnectionEnd::kUnread)
      << "nothing is saved for later";
}

TEST_F(FlowControlTest, AHeaderBlockHasTenSeconds) {
  FlowControl& flow = Connect().flow;
  const auto walk = [this](const std::string& bytes) {
    walk_.Walk(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  };
  walk(kPreface + Frame(kHeadersFrame, 0, 1, "ab"));
  for (int i = 0; i <= 10; ++i) EXPECT_EQ(flow.Look(start_ + seconds(i), walk_), std::nullopt) << i;
  walk(Frame(kContinuationFrame, kEndHeaders, 1, "") + Frame(kHeadersFrame, 0, 3, "ab"));
  for (int i = 11; i <= 21; ++i)
    EXPECT_EQ(flow.Look(start_ + seconds(i), walk_), std::nullopt) << i;
  EXPECT_EQ(flow.Look(start_ + seconds(22), walk_), ConnectionEnd::kHeaders);
  walk(Frame(kContinuationFrame, kEndHeaders, 3, ""));
  EXPECT_EQ(flow.Look(start_ + seconds(23), walk_), std::nullopt);
}

TEST_F(FlowControlTest, AFloodPauses) {
  FlowControl& flow = Connect().flow;
  EXPECT_EQ(flow.Throttle(), std::nullopt);
  flow.credit().Spend(FrameCredit::kMost + 1);
  EXPECT_EQ(flow.Throttle(), milliseconds(50));
  EXPECT_FALSE(flow.may_read());
  FlowControl& other = Connect().flow;
  other.credit().Spend(FrameCredit::kMost + 1);
  EXPECT_EQ(other.Throttle(), milliseconds(100)) << "they share the rate";
  flow.EndPause(start_ + milliseconds(100));
  EXPECT_TRUE(flow.may_read());
  EXPECT_EQ(flow.Throttle(), std::nullopt);
}

TEST_F(FlowControlTest, TinyReadsCostMore) {
  FlowControl& flow = Connect().flow;
  for (int i = 0; i < 4 * static_cast<int>(FrameCredit::kMost); ++i) flow.Received(64, false);
  EXPECT_EQ(flow.Throttle(), std::nullopt);
  for (int i = 0; i < 4 * static_cast<int>(FrameCredit::kMost); ++i) flow.Received(63, false);
  EXPECT_NE(flow.Throttle(), std::nullopt);
}

TEST_F(FlowControlTest, WhatComesAfterTheEndIsReadForAWhile) {
  FlowControl& flow = Connect().flow;
  EXPECT_FALSE(flow.Received(1 << 20, false));
  EXPECT_FALSE(flow.Received(64 << 10, true));
  EXPECT_TRUE(flow.may_read());
  EXPECT_TRUE(flow.Received(1, true));
  EXPECT_FALSE(flow.may_read());
}

TEST_F(FlowControlTest, CountsWhatWaits) {
  FlowControl& flow = Connect().flow;
  EXPECT_TRUE(flow.Charge(1'000, 0, walk_, false));
  EXPECT_EQ(context_.backlog.taken(), 0U) << "the peer takes it";
  EXPECT_TRUE(flow.Charge(1'000, 2, walk_, false));
  EXPECT_EQ(context_.backlog.taken(), 1'024U);
  EXPECT_TRUE(flow.Charge(1'000, 2, walk_, true));
  EXPECT_EQ(context_.backlog.taken(), 2'024U);
  flow.HoldBack(reinterpret_cast<const uint8_t*>("rest"), 4, start_);
  EXPECT_TRUE(flow.Charge(1'000, 0, walk_, false));
  EXPECT_EQ(context_.backlog.taken(), 1'004U);
  EXPECT_TRUE(flow.LetGo(0, 0));
  EXPECT_TRUE(flow.Charge(1'000, 0, walk_, false));
  EXPECT_EQ(context_.backlog.taken(), 0U);
}

class LittleBacklog : public FlowControlTest {
 protected:
  LittleBacklog() : FlowControlTest({.max_backlog = 64 << 10}) {}
};

TEST_F(LittleBacklog, WhoHasMuchOfItIsClosedWhenItGrows) {
  TestConnection& large = Connect();
  TestConnection& small = Connect();
  EXPECT_TRUE(Waits(large, 40 << 10));
  EXPECT_TRUE(Waits(large, 48 << 10));
  EXPECT_FALSE(Waits(large, (48 << 10) + 1)) << "a quarter is for other peers";
  EXPECT_TRUE(Waits(small, 8 << 10)) << "it has little";
  EXPECT_FALSE(Waits(small, (8 << 10) + 1));
  EXPECT_TRUE(Waits(Connect(2), 12 << 10));
}

TEST_F(LittleBacklog, WhoStandsStillGoesForAnother) {
  TestConnection& still = Connect(1, seconds(6));
  TestConnection& moves = Connect(1);
  EXPECT_TRUE(Waits(still, 40 << 10));
  EXPECT_TRUE(Waits(moves, 40 << 10));
  loop::RunOn(*loop_, [] {});
  EXPECT_TRUE(still.lost);
  EXPECT_FALSE(moves.lost);
}

TEST_F(FlowControlTest, APeersConnectionsShareItsReads) {
  std::deque<scheduling::Place> places(17);
  TestConnection& first = Connect();
  for (scheduling::Place& place : places) {
    ASSERT_TRUE(context_.connections.Take(place, Connect(), 1));
  }
  EXPECT_EQ(first.flow.read_size(), 64U << 10);
  first.flow.Look(start_, walk_);
  EXPECT_EQ(first.flow.read_size(), (64U << 10) * 8 / 17);
  for (scheduling::Place& place : places) context_.connections.Give(place);
}

}  // namespace
}  // namespace flow_control_test
}  // namespace quantd::transport
