// Who loses a place in a full table.
#include "server/scheduling/places.h"

#include <gtest/gtest.h>

#include <deque>
#include <thread>
#include <vector>

#include "../loop/loop_testing.h"

namespace quantd::scheduling {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kStall{5};

class TestHolder final : public Holder {
 public:
  TestHolder(loop::LedLoop& loop, uint64_t peer, loop::Clock::duration still, uint64_t group = 0)
      : Holder(*loop, peer, loop::Clock::now() - still, group) {}
  Place place;
  bool lost = false;

 private:
  void OnDisplaced() override { lost = true; }
};

class Places : public testing::Test {
 protected:
  // A call of a peer that has stood still for this long, and whether it gets `amount`.
  TestHolder& Call(uint64_t peer, loop::Clock::duration still) {
    return calls_.emplace_back(loop_, peer, still);
  }
  bool Take(uint64_t peer, loop::Clock::duration still = {}, uint64_t amount = 1) {
    TestHolder& call = Call(peer, still);
    return table_.Take(call.place, call, amount);
  }
  // The numbers of the calls that have been told that they lost their places.
  std::vector<size_t> Lost() {
    loop::RunOn(*loop_, [] {});
    std::vector<size_t> lost;
    for (size_t i = 0; i < calls_.size(); ++i) {
      if (calls_[i].lost) lost.push_back(i);
    }
    return lost;
  }
  void TearDown() override {
    for (TestHolder& call : calls_) table_.Give(call.place);
    EXPECT_EQ(table_.taken(), 0U);
    loop::RunOn(*loop_, [] {});
  }

  loop::LedLoop loop_;
  PlaceTable table_{16, kStall};
  std::deque<TestHolder> calls_;
};

TEST(PeerShares, EachPeerLeavesAQuarterOfWhatItFinds) {
  PeerShares shares(100);
  EXPECT_TRUE(shares.Within(1, 1000));  // it has nothing
  shares.Take(1, 70);
  EXPECT_TRUE(shares.Within(1, 5));
  EXPECT_FALSE(shares.Within(1, 6));
  shares.Take(2, 20);  // 10 are free
  EXPECT_TRUE(shares.Within(2, 10));
  EXPECT_FALSE(shares.Within(2, 11));
  EXPECT_FALSE(shares.Within(1, 1));
  shares.Give(1, 70);
  EXPECT_EQ(shares.sum(), 20);
  EXPECT_TRUE(shares.Within(2, 55));
}

TEST_F(Places, TheStillestOfThePeerWithTheMostIsDisplaced) {
  for (int i = 0; i < 9; ++i) EXPECT_TRUE(Take(1, seconds(6 + i % 3)));  // 0 to 8: 2 is stillest
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(Take(2, seconds(60)));         // stiller, but fewer
  for (uint64_t peer = 3; peer < 5; ++peer) EXPECT_TRUE(Take(peer));
  EXPECT_EQ(table_.taken(), 16U);
  EXPECT_TRUE(Take(5));
  EXPECT_EQ(Lost(), std::vector<size_t>{2});
  EXPECT_EQ(table_.displaced(), 1U);
}

// Whatever peers take, and whether they stand still or end their calls and begin them again.
TEST_F(Places, SomethingStaysFreeForTheNextPeer) {
  constexpr uint64_t kMost = 3'000;
  PlaceTable table(kMost, kStall);
  for (uint64_t peers = 1; peers <= 5; ++peers) {
    std::deque<TestHolder> calls;
    for (int round = 0; round < 10; ++round) {
      for (uint64_t peer = 1; peer <= peers; ++peer) {
        do {
          calls.emplace_back(loop_, peer, loop::Clock::duration());
        } while (table.Take(calls.back().place, calls.back(), 1));
      }
      EXPECT_GE(kMost - table.taken(), kMost >> (2 * peers)) << "each leaves a quarter";
      for (size_t i = static_cast<size_t>(round) % 3; i < calls.size(); i += 3) {
        table.Give(calls[i].place);
      }
    }
    for (TestHolder& call : calls) table.Give(call.place);
  }
  EXPECT_EQ(table.displaced(), 0U);
}

// None stands still, and their peer has its share.
TEST_F(Places, AConnectionThatHasLittleTakesAPlaceOfTheOneWithTheMost) {
  std::deque<TestHolder> calls;
  const auto take = [&](uint64_t connection) {
    TestHolder& call = calls.emplace_back(loop_, 1, loop::Clock::duration(), connection);
    return table_.Take(call.place, call, 1);
  };
  for (int i = 0; i < 12; ++i) EXPECT_TRUE(take(i < 3 ? 1 : 2));
  for (size_t i = 0; i < 12; ++i) {
    if (i % 3 != 0) calls[i].Moved(loop::Clock::now());
  }
  calls[3].Busy();
  EXPECT_FALSE(take(1)) << "the other one has less than four times as much";
  EXPECT_TRUE(take(3));
  loop::RunOn(*loop_, [] {});
  EXPECT_TRUE(calls[6].lost) << "of those that compute nothing it has stood still for longest";
  EXPECT_EQ(table_.displaced(), 1U);
  EXPECT_EQ(table_.Of(1), 12U);
  calls[3].Idle(loop::Clock::now());
  for (TestHolder& call : calls) table_.Give(call.place);
}

// A large upload is not lost to small ones on other connections, which can wait.
TEST_F(Places, WhoMovesKeepsItsPlaceIfOthersCanWait) {
  PlaceTable table(16, kStall, PlaceTable::Otherwise::kNothing);
  TestHolder moves(loop_, 1, {}, 1), waits(loop_, 1, {}, 2);
  EXPECT_TRUE(table.Take(moves.place, moves, 14));
  EXPECT_FALSE(table.MayTake(1, 1));
  EXPECT_TRUE(table.MayTake(2, 1));
  TestHolder stands(loop_, 2, seconds(1));
  EXPECT_TRUE(table.Take(stands.place, stands, 2));
  EXPECT_FALSE(table.Take(waits.place, waits, 1));
  table.Give(moves.place);
  EXPECT_EQ(table.displaced(), 0U);
  // When nobody moves, it does not help to wait for longer.
  EXPECT_TRUE(table.Take(waits.place, waits, 15));
  loop::RunOn(*loop_, [] {});
  EXPECT_TRUE(stands.lost);
  for (Place* place : {&stands.place, &waits.place}) table.Give(*place);
}

TEST_F(Places, WhoMovesKeepsItsPlace) {
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(Take(1 + i % 4, kStall - milliseconds(100), 2));
  EXPECT_FALSE(Take(3, {}, 2));
  calls_[0].Busy();  // however long ago it moved
  for (size_t i = 1; i < 8; ++i) {
    if (i != 2) calls_[i].Moved(loop::Clock::now());
  }
  std::this_thread::sleep_for(milliseconds(100));  // now the third has stood still for long enough
  EXPECT_TRUE(Take(3, {}, 2));
  EXPECT_EQ(Lost(), std::vector<size_t>{2});
  calls_[0].Idle(loop::Clock::now());
}

// A connection may be displaced at once, but not by peers that would then have as many.
TEST_F(Places, WhatIsCheapGoesAtOnceForAPeerWithFewer) {
  PlaceTable table(8, kStall, PlaceTable::Otherwise::kOfAnyOther);
  const auto take = [&](uint64_t peer) {
    TestHolder& call = Call(peer, {});
    const bool taken = table.Take(call.place, call, 1);
    if (!taken) calls_.pop_back();
    return taken;
  };
  for (const uint64_t peer : {1, 1, 1, 1, 2, 2, 3, 4}) EXPECT_TRUE(take(peer));
  EXPECT_EQ(table.taken(), 8U);
  EXPECT_FALSE(take(1));
  EXPECT_TRUE(take(5));
  const std::vector<size_t> lost = Lost();
  ASSERT_EQ(lost.size(), 1U);
  EXPECT_LT(lost[0], 4U);
  EXPECT_EQ(table.Of(1), 3U);
  for (TestHolder& call : calls_) table.Give(call.place);
}

TEST_F(Places, APeerBeyondItsShareDisplacesOnlyItsOwn) {
  EXPECT_TRUE(Take(2, seconds(60)));
  for (int i = 0; i < 12; ++i) EXPECT_TRUE(Take(1, i == 5 ? seconds(6) : seconds(0)));
  EXPECT_FALSE(table_.Within(1, 1));
  EXPECT_TRUE(Take(1));
  EXPECT_EQ(Lost(), std::vector<size_t>{6});
  EXPECT_FALSE(Take(1));
  EXPECT_EQ(table_.Of(1), 12U);
}

// Those that leave must have left before many more come.
TEST_F(Places, WhatIsLeavingIsLittle) {
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(Take(1 + i % 2, seconds(6), 4));
  EXPECT_TRUE(Take(3));
  EXPECT_EQ(table_.taken(), 17U);
  EXPECT_TRUE(Take(4));  // the rest of what the first one had
  EXPECT_FALSE(Take(5, {}, 4));
  const std::vector<size_t> lost = Lost();
  ASSERT_EQ(lost.size(), 1U);
  table_.Give(calls_[lost[0]].place);
  EXPECT_TRUE(Take(5, {}, 4));
}

// A peer that sends a byte now and then falls behind.
TEST_F(Places, SlowBytesAreNoMove) {
  TestHolder& call = Call(1, seconds(10));
  call.Moved(loop::Clock::now(), 1'000, 1'000);
  EXPECT_NEAR(std::chrono::duration<double>(loop::Clock::now() - call.still_since()).count(), 9,
              0.5);
  call.Moved(loop::Clock::now(), 1'000'000, 1'000);
  EXPECT_LT(loop::Clock::now() - call.still_since(), seconds(1)) << "nothing is saved for later";
}

TEST_F(Places, APlaceShrinks) {
  EXPECT_TRUE(Take(1, {}, 3));
  table_.Shrink(calls_[0].place, 1);
  EXPECT_EQ(table_.Of(1), 1U);
  table_.Shrink(calls_[0].place, 2);
  EXPECT_EQ(table_.taken(), 1U);
}

}  // namespace
}  // namespace quantd::scheduling
