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
  TestHolder(loop::LedLoop& loop, uint64_t peer, loop::Clock::duration still)
      : Holder(*loop, peer, loop::Clock::now() - still) {}
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

TEST_F(Places, TheStillestOfThePeerWithTheMostIsDisplaced) {
  for (int i = 0; i < 9; ++i) EXPECT_TRUE(Take(1, seconds(6 + i % 3)));  // 0 to 8: 2 is stillest
  for (int i = 0; i < 7; ++i) EXPECT_TRUE(Take(2, seconds(60)));         // stiller, but fewer
  EXPECT_TRUE(Take(3));
  EXPECT_EQ(Lost(), std::vector<size_t>{2});
  EXPECT_EQ(table_.displaced(), 1U);
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

// A client with little need not wait for long beside one with much.
TEST_F(Places, AFifthOfTheTimeBesideAPeerThatHasFarMore) {
  for (int i = 0; i < 12; ++i) EXPECT_TRUE(Take(1, kStall / 5));
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(Take(2 + i, kStall / 5));
  EXPECT_TRUE(Take(9, {}, 1));
  EXPECT_EQ(Lost().size(), 1U);
  EXPECT_LT(Lost()[0], 12U);
  EXPECT_FALSE(Take(9, {}, 4)) << "it would have more than a quarter of the other's";
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
  TestHolder& free = Call(5, {});
  EXPECT_FALSE(table_.TakeFree(free.place, free, 1));
  EXPECT_FALSE(Take(5, {}, 4));
  const std::vector<size_t> lost = Lost();
  ASSERT_EQ(lost.size(), 1U);
  table_.Give(calls_[lost[0]].place);
  EXPECT_TRUE(table_.TakeFree(free.place, free, 1));
  EXPECT_TRUE(Take(5, {}, 4));
}

TEST_F(Places, RoomIsMadeForWhatWaits) {
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(Take(1 + i % 2, seconds(6), 4));
  table_.MakeRoom(3, 8);
  EXPECT_EQ(Lost().size(), 2U);
  table_.MakeRoom(3, 8);  // it is on its way
  EXPECT_EQ(Lost().size(), 2U);
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

TEST_F(Places, APlaceMoves) {
  EXPECT_TRUE(Take(1, {}, 3));
  EXPECT_TRUE(Take(1, {}, 2));
  Place elsewhere(std::move(calls_[0].place));
  EXPECT_EQ(elsewhere.amount(), 3U);
  table_.Shrink(elsewhere, 1);
  EXPECT_EQ(table_.Of(1), 3U);
  table_.Give(calls_[0].place);  // empty
  EXPECT_EQ(table_.taken(), 3U);
  table_.Give(elsewhere);
  EXPECT_EQ(table_.taken(), 2U);
}

}  // namespace
}  // namespace quantd::scheduling
