// Memory for incoming messages: which ones get it, and which wait.
#include "server/admission/receiving.h"

#include <gtest/gtest.h>

#include <deque>

#include "receiving_testing.h"
#include "server/memory/buffer.h"

namespace quantd::admission {
namespace {

TEST_F(ReceivingTest, HasSizes) {
  EXPECT_EQ(receiving_.largest(), kLarge);
  EXPECT_EQ(receiving_.window(), kWindow);
  EXPECT_EQ(receiving_.held_bytes(), 0u);
  // First windows have an eighth, but at least one of them and at most 1024.
  EXPECT_EQ(Receiving(4 * kWindow, kWindow, 4).largest(), 3 * kWindow);
  EXPECT_EQ(Receiving(8 * kWindow + 8, kWindow, 4).largest(), 7 * kWindow + 7);
  EXPECT_EQ(Receiving(10'000 * kWindow, kWindow, 4).largest(), 8976 * kWindow);
  // With too little memory there is no room for a large message, but no error either.
  EXPECT_EQ(Receiving(1, kWindow, 4).largest(), 0u);
  EXPECT_GE(Receiving::kStep, kMiB + 4096) << "a tensor of 1 MiB, and what stands around it";
}

TEST_F(ReceivingTest, SmallMessagesAreRefusedWhenTheFirstWindowsAreUsedUp) {
  std::deque<TestUpload> uploads(kFirstWindows);
  uint64_t peer = 1;  // a different one each: a peer has a share only
  for (TestUpload& upload : uploads) ASSERT_EQ(Begin(upload, kWindow, peer++), Begun::kFirst);
  EXPECT_EQ(receiving_.held_bytes(), 2 * kMiB);
  TestUpload refused, empty;
  EXPECT_EQ(Begin(refused, 1), Begun::kRefused);
  EXPECT_FALSE(refused.holds());
  EXPECT_EQ(Begin(empty, 0), Begun::kFirst) << "it needs no memory";
  const Receiving::Room all = receiving_.Extend(uploads[1], kWindow);
  EXPECT_EQ(all.granted, kWindow);
  EXPECT_FALSE(all.reserved) << "it has all that it needs";
  TestCall call(*loop_, 9);
  scheduling::Place place;
  EXPECT_FALSE(receiving_.TakeFirst(place, call, 1));
  Release(uploads[0]);
  EXPECT_EQ(Begin(refused, 1), Begun::kFirst);
  EXPECT_TRUE(receiving_.TakeFirst(place, call, kWindow - 1));
  EXPECT_FALSE(receiving_.TakeFirst(place, call, 1));
  receiving_.GiveFirst(place);
  receiving_.GiveFirst(place);
}

TEST_F(ReceivingTest, ALargeMessageHasItsPlaceAtOnceBelowHalfOfTheMemory) {
  std::deque<TestUpload> uploads(5);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Begin(uploads[i], 2 * kMiB), Begun::kReserved);
  EXPECT_EQ(receiving_.held_bytes(), 6 * kMiB);
  EXPECT_EQ(Begin(uploads[3], 2 * kMiB), Begun::kFirst);
  EXPECT_EQ(receiving_.held_bytes(), 6 * kMiB + kWindow) << "who has sent nothing asks for nothing";
  // Once it has moved, it gets its place.
  EXPECT_TRUE(Extend(uploads[3], kWindow));
  EXPECT_EQ(receiving_.held_bytes(), 8 * kMiB);
  EXPECT_EQ(Begin(uploads[4], kMiB), Begun::kFirst);
}

// With windows for messages that are not small, these use the memory for first windows last.
TEST_F(ReceivingTest, SmallMessagesKeepTheMemoryForFirstWindows) {
  constexpr uint64_t kSmall = Receiving::kSmall;
  EXPECT_EQ(receiving_.small(), kWindow);
  Receiving receiving(kBudget, Receiving::kStep, 4);
  EXPECT_EQ(receiving.small(), kSmall);
  TestUpload small, first, second, third, refused;
  EXPECT_EQ(receiving.Begin(small, kSmall, small.Of(*loop_, 1), *loop_), Begun::kFirst);
  EXPECT_EQ(receiving.Begin(first, kSmall + 1, first.Of(*loop_, 2), *loop_), Begun::kReserved);
  EXPECT_EQ(receiving.held_bytes(), kSmall + memory::Pool::Footprint(kSmall + 1));
  EXPECT_EQ(receiving.Begin(second, kLarge / 2, second.Of(*loop_, 3), *loop_), Begun::kFirst)
      << "sent nothing yet";
  EXPECT_TRUE(receiving.Extend(second, kSmall).reserved);
  // Half of the memory is used: a message that its sender can send unasked is let in nevertheless.
  const uint64_t held = receiving.held_bytes();
  EXPECT_EQ(receiving.Begin(third, kMiB, third.Of(*loop_, 4), *loop_), Begun::kFirst);
  EXPECT_EQ(receiving.held_bytes(), held + kMiB);
  EXPECT_EQ(receiving.Begin(refused, kMiB, refused.Of(*loop_, 5), *loop_), Begun::kRefused);
  for (TestUpload* upload : {&small, &first, &second, &third}) receiving.Release(*upload);
  EXPECT_EQ(receiving.held_bytes(), 0U);
}

// Where no upload may wait, one that fits is admitted, whatever its size, and no other.
TEST_F(ReceivingTest, WhoMayNotWaitHasItsPlaceAtOnce) {
  Receiving receiving(kBudget, kWindow, 0);
  TestUpload large, small, other;
  for (const uint64_t total : {kWindow + 1, kLarge / 2 - kWindow, kLarge / 2 + 1, kLarge}) {
    EXPECT_EQ(receiving.Begin(large, total, large.Of(*loop_, 1), *loop_), Begun::kReserved)
        << total;
    EXPECT_LE(receiving.held_bytes(), kLarge);
    receiving.Release(large);
    EXPECT_EQ(receiving.held_bytes(), 0u);
  }
  ASSERT_EQ(receiving.Begin(large, kLarge, large.Of(*loop_, 1), *loop_), Begun::kReserved);
  EXPECT_EQ(receiving.Begin(small, kWindow, small.Of(*loop_, 2), *loop_), Begun::kFirst);
  EXPECT_EQ(receiving.Begin(other, kMiB, other.Of(*loop_, 2), *loop_), Begun::kRefused);
  EXPECT_EQ(receiving.waiting(), 0);
  receiving.Release(small);
  receiving.Release(other);
  receiving.Release(large);
  EXPECT_EQ(receiving.held_bytes(), 0u);
}

TEST_F(ReceivingTest, WindowsGrowWithWhatHasCome) {
  TestUpload upload;
  ASSERT_EQ(Begin(upload, 7 * kMiB), Begun::kReserved);
  const auto granted = [&](uint64_t received) {
    const Receiving::Room room = receiving_.Extend(upload, received);
    EXPECT_TRUE(room.reserved);
    return room.granted;
  };
  EXPECT_EQ(granted(0), Receiving::kStep);
  EXPECT_EQ(granted(kMiB / 2), kMiB / 2 + Receiving::kStep);
  EXPECT_EQ(granted(2 * kMiB), 4 * kMiB);
  EXPECT_EQ(granted(kMiB), 4 * kMiB) << "never less than the time before";
  EXPECT_EQ(granted(3 * kMiB), 6 * kMiB);
  EXPECT_EQ(granted(4 * kMiB), 7 * kMiB);
  EXPECT_EQ(granted(7 * kMiB), 7 * kMiB);
}

TEST_F(ReceivingTest, WaitsUntilAllOfAMessageHasAPlace) {
  TestUpload first, second, third, small;
  Reserve(first, 12 * kMiB);
  Wait(second, 4 * kMiB);
  EXPECT_FALSE(Extend(second, kWindow)) << "asked again";
  EXPECT_EQ(receiving_.waiting(), 1);
  EXPECT_EQ(receiving_.Extend(second, kWindow).granted, kWindow);
  // There would be room for this one, but another one was first.
  Wait(third, kMiB);
  EXPECT_EQ(Begin(small, kWindow), Begun::kFirst) << "small ones wait for nobody";
  EXPECT_EQ(receiving_.held_bytes(), 12 * kMiB + 3 * kWindow);
  Deliver();
  EXPECT_EQ(second.rooms, 0);
  Release(first);
  EXPECT_EQ(second.rooms, 1);
  EXPECT_EQ(third.rooms, 1);
  EXPECT_EQ(receiving_.waiting(), 0);
  EXPECT_TRUE(Extend(second, kWindow));
  EXPECT_GT(receiving_.Extend(third, kWindow).granted, kWindow);
  EXPECT_EQ(receiving_.held_bytes(), 5 * kMiB + kWindow);
}

TEST_F(ReceivingTest, PeersTakeTurns) {
  TestUpload first;
  std::deque<TestUpload> greedy(3);
  TestUpload modest;
  Reserve(first, kLarge);
  for (TestUpload& upload : greedy) {
    Begin(upload, 8 * kMiB, 1);
    EXPECT_FALSE(Extend(upload, kWindow));
  }
  Wait(modest, 8 * kMiB, 2);
  Release(first);
  EXPECT_EQ(greedy[0].rooms, 1);
  Release(greedy[0]);
  EXPECT_EQ(modest.rooms, 1) << "it came last, but its peer has been given nothing";
  Release(modest);
  EXPECT_EQ(greedy[1].rooms, 1);
  EXPECT_EQ(greedy[2].rooms, 0);
}

TEST_F(ReceivingTest, LetsNoLargeOneInWhenEnoughWait) {
  TestUpload first, refused, small;
  std::deque<TestUpload> waiting(4);
  Reserve(first, kLarge);
  uint64_t peer = 1;  // one peer has three of four places at most
  for (TestUpload& upload : waiting) {
    EXPECT_EQ(Begin(refused, kWindow + 1, 1), peer == 4 ? Begun::kRefused : Begun::kFirst);
    Release(refused);
    ASSERT_EQ(Begin(upload, kMiB, peer == 4 ? 2 : 1), Begun::kFirst);
    EXPECT_FALSE(Extend(upload, kWindow));
    ++peer;
  }
  EXPECT_EQ(Begin(refused, kWindow + 1, 3), Begun::kRefused);
  EXPECT_EQ(Begin(small, kWindow), Begun::kFirst);
  EXPECT_EQ(receiving_.waiting(), 4);
  Release(waiting[2]);
  EXPECT_EQ(Begin(refused, kWindow + 1, 1), Begun::kFirst);
}

TEST_F(ReceivingTest, TheLastQuarterIsNeverOnePeers) {
  // First windows have 2 MiB, of which a peer may have 1.5.
  std::deque<TestUpload> small(kFirstWindows);
  uint64_t let_in = 0;
  for (TestUpload& upload : small) let_in += Begin(upload, kWindow, 1) == Begun::kFirst ? 1 : 0;
  EXPECT_EQ(let_in, kFirstWindows - kFirstWindows / 4);
  TestUpload other;
  EXPECT_EQ(Begin(other, kWindow, 2), Begun::kFirst);
  for (TestUpload& upload : small) Release(upload);
  Release(other);
  // The rest has 14 MiB, of which a peer may have 10.5: the third waits although there is room.
  // Another peer's upload does not wait behind it.
  TestUpload first, second, third;
  Reserve(first, 5 * kMiB, 1);
  Reserve(second, 5 * kMiB, 1);
  Wait(third, kMiB, 1);
  Begin(other, 3 * kMiB, 2);
  EXPECT_TRUE(Extend(other, kWindow));
  Release(first);
  EXPECT_EQ(third.rooms, 1);
  for (TestUpload* upload : {&second, &third, &other}) Release(*upload);
  // A message that is larger than a share must be possible.
  Reserve(first, kLarge, 1);
}

}  // namespace
}  // namespace quantd::admission
