// Memory for messages on their way in: who is let in, who waits, who has to give something back.
#include "server/admission/receiving.h"

#include <gtest/gtest.h>

#include <chrono>
#include <deque>

#include "receiving_testing.h"
#include "server/memory/buffer.h"

namespace quantd::admission {
namespace {

using std::chrono::milliseconds;
using Begun = Receiving::Begun;

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kWindow = 64 << 10;
// 2 MiB for first windows, 14 MiB for the rest.
constexpr uint64_t kBudget = 16 * kMiB;
constexpr uint64_t kFirstWindows = 2 * kMiB / kWindow;
constexpr uint64_t kLarge = 14 * kMiB;

class ReceivingTest : public testing::Test {
 protected:
  // What is told has been told.
  void Deliver() {
    RunOn(*loop_, [] {});
  }
  Begun Begin(TestUpload& upload, uint64_t total, uint64_t peer = 1) {
    return receiving_.Begin(upload, total, peer, *loop_);
  }
  // So many bytes are here, and it asks for more. Whether all of it has its place.
  bool Extend(TestUpload& upload, uint64_t received) {
    return receiving_.Extend(upload, received).reserved;
  }
  // Has `upload` in kReserved, with all its window unused.
  void Reserve(TestUpload& upload, uint64_t total) {
    ASSERT_NE(Begin(upload, total), Begun::kRefused);
    ASSERT_TRUE(Extend(upload, kWindow));
  }
  // Looks so long after now. Whoever has not moved for half a second by then stands.
  void Look(milliseconds later) { receiving_.Look(loop::Clock::now() + later); }
  void Release(TestUpload& upload) {
    receiving_.Release(upload);
    Deliver();
    EXPECT_FALSE(receiving_.Told(upload));
    EXPECT_FALSE(upload.holds());
  }

  loop::LedLoop loop_;
  Receiving receiving_{kBudget, kWindow, 4};
};

TEST_F(ReceivingTest, HasSizes) {
  EXPECT_EQ(receiving_.largest(), kLarge);
  EXPECT_EQ(receiving_.window(), kWindow);
  EXPECT_EQ(receiving_.held_bytes(), 0u);
}

TEST_F(ReceivingTest, SmallMessagesAreRefusedWhenTheFirstWindowsAreUsedUp) {
  std::deque<TestUpload> uploads(kFirstWindows);
  for (TestUpload& upload : uploads) ASSERT_EQ(Begin(upload, kWindow), Begun::kFirst);
  EXPECT_EQ(receiving_.held_bytes(), 2 * kMiB);
  TestUpload refused, empty;
  EXPECT_EQ(Begin(refused, 1), Begun::kRefused);
  EXPECT_FALSE(refused.holds());
  EXPECT_EQ(Begin(empty, 0), Begun::kFirst) << "it needs no memory";
  EXPECT_FALSE(receiving_.TakeFirst(1));
  Release(uploads[0]);
  EXPECT_EQ(Begin(refused, 1), Begun::kFirst);
  EXPECT_TRUE(receiving_.TakeFirst(kWindow - 1));
  EXPECT_FALSE(receiving_.TakeFirst(1));
  receiving_.GiveFirst(kWindow - 1);
  receiving_.GiveFirst(0);
  for (TestUpload& upload : uploads) Release(upload);
  Release(refused);
  Release(refused);  // does nothing
  Release(empty);
  EXPECT_EQ(receiving_.held_bytes(), 0u);
}

TEST_F(ReceivingTest, ALargeMessageHasItsPlaceAtOnceBelowHalfOfTheMemory) {
  std::deque<TestUpload> uploads(5);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Begin(uploads[i], 2 * kMiB), Begun::kReserved);
  EXPECT_EQ(receiving_.held_bytes(), 6 * kMiB);
  EXPECT_EQ(Begin(uploads[3], 2 * kMiB), Begun::kFirst);
  EXPECT_EQ(receiving_.held_bytes(), 6 * kMiB + kWindow) << "who has sent nothing asks for nothing";
  // Once it has moved, there is a place.
  EXPECT_TRUE(Extend(uploads[3], kWindow));
  EXPECT_EQ(receiving_.held_bytes(), 8 * kMiB);
  EXPECT_EQ(Begin(uploads[4], kMiB), Begun::kFirst);
  for (TestUpload& upload : uploads) Release(upload);
  EXPECT_EQ(receiving_.held_bytes(), 0u);
}

TEST_F(ReceivingTest, HoldsWhatABufferOfThatSizeTakes) {
  TestUpload upload;
  EXPECT_EQ(Begin(upload, 2 * kMiB + 1), Begun::kReserved);
  EXPECT_EQ(receiving_.held_bytes(), memory::Pool::Footprint(2 * kMiB + 1));
  Release(upload);
  // The largest one's is all there is, not more.
  EXPECT_EQ(Begin(upload, kLarge), Begun::kFirst);
  EXPECT_TRUE(Extend(upload, kWindow));
  EXPECT_EQ(receiving_.held_bytes(), kLarge);
  Release(upload);
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
  Release(upload);
}

TEST_F(ReceivingTest, WaitsUntilAllOfAMessageHasAPlace) {
  TestUpload first, second, third, small;
  Reserve(first, 12 * kMiB);
  EXPECT_EQ(Begin(second, 4 * kMiB), Begun::kFirst);
  EXPECT_FALSE(Extend(second, kWindow));
  EXPECT_FALSE(Extend(second, kWindow)) << "asked again";
  EXPECT_EQ(receiving_.waiting(), 1);
  EXPECT_EQ(receiving_.Extend(second, kWindow).granted, kWindow);
  // There is room for this one, but it came later.
  EXPECT_EQ(Begin(third, kMiB), Begun::kFirst);
  EXPECT_FALSE(Extend(third, kWindow));
  EXPECT_EQ(Begin(small, kWindow), Begun::kFirst) << "small ones wait for nobody";
  EXPECT_EQ(receiving_.held_bytes(), 12 * kMiB + 3 * kWindow);
  Deliver();
  EXPECT_EQ(second.rooms, 0);
  Release(first);
  Deliver();
  EXPECT_EQ(second.rooms, 1);
  EXPECT_EQ(third.rooms, 1);
  EXPECT_EQ(receiving_.waiting(), 0);
  EXPECT_TRUE(Extend(second, kWindow));
  EXPECT_GT(receiving_.Extend(third, kWindow).granted, kWindow);
  EXPECT_EQ(receiving_.held_bytes(), 5 * kMiB + kWindow);
  for (TestUpload* upload : {&second, &third, &small}) Release(*upload);
  EXPECT_EQ(receiving_.held_bytes(), 0u);
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
  Begin(modest, 8 * kMiB, 2);
  EXPECT_FALSE(Extend(modest, kWindow));
  Release(first);
  Deliver();
  EXPECT_EQ(greedy[0].rooms, 1);
  Release(greedy[0]);
  Deliver();
  EXPECT_EQ(modest.rooms, 1) << "it came last, but its peer has been given nothing";
  Release(modest);
  Deliver();
  EXPECT_EQ(greedy[1].rooms, 1);
  EXPECT_EQ(greedy[2].rooms, 0);
  for (TestUpload& upload : greedy) Release(upload);
}

TEST_F(ReceivingTest, LetsNoLargeOneInWhenEnoughWait) {
  TestUpload first, refused, small;
  std::deque<TestUpload> waiting(4);
  Reserve(first, kLarge);
  for (TestUpload& upload : waiting) {
    ASSERT_EQ(Begin(upload, kMiB), Begun::kFirst);
    EXPECT_FALSE(Extend(upload, kWindow));
  }
  EXPECT_EQ(Begin(refused, kWindow + 1), Begun::kRefused);
  EXPECT_EQ(Begin(small, kWindow), Begun::kFirst);
  EXPECT_EQ(receiving_.waiting(), 4);
  Release(waiting[2]);
  EXPECT_EQ(Begin(refused, kWindow + 1), Begun::kFirst);
  for (TestUpload& upload : waiting) Release(upload);
  for (TestUpload* upload : {&first, &refused, &small}) Release(*upload);
  EXPECT_EQ(receiving_.held_bytes(), 0u);
}

TEST_F(ReceivingTest, AnUploadThatStandsLosesWhatItDoesNotUseAndAsksAgain) {
  TestUpload stands, waits;
  Reserve(stands, 10 * kMiB);
  const uint64_t granted = receiving_.Extend(stands, kMiB).granted;
  Begin(waits, 8 * kMiB);
  EXPECT_FALSE(Extend(waits, kWindow));
  Look(milliseconds(100));  // it has moved until now, as far as is known
  Look(milliseconds(400));
  EXPECT_EQ(receiving_.waiting(), 1);
  Look(milliseconds(1200));
  EXPECT_EQ(receiving_.waiting(), 0);
  Deliver();
  EXPECT_EQ(waits.rooms, 1);
  EXPECT_EQ(receiving_.held_bytes(), 8 * kMiB + memory::Pool::Footprint(granted));
  EXPECT_EQ(receiving_.given_up(), 0u);
  // What it may have sent still has its place. Then it waits, with that.
  EXPECT_FALSE(Extend(stands, granted));
  EXPECT_EQ(receiving_.Extend(stands, granted).granted, granted);
  EXPECT_EQ(receiving_.waiting(), 1);
  EXPECT_EQ(receiving_.held_bytes(), 8 * kMiB + memory::Pool::Footprint(granted));
  Release(waits);
  Deliver();
  EXPECT_EQ(stands.rooms, 1);
  EXPECT_TRUE(Extend(stands, granted));
  EXPECT_EQ(receiving_.held_bytes(), 10 * kMiB);
  Release(stands);
  EXPECT_EQ(receiving_.held_bytes(), 0u);
}

TEST_F(ReceivingTest, NobodyIsStoppedWhileNobodyWaits) {
  TestUpload stands;
  Reserve(stands, 10 * kMiB);
  for (int i = 1; i < 20; ++i) Look(milliseconds(1000 * i));
  EXPECT_EQ(receiving_.held_bytes(), 10 * kMiB);
  Release(stands);
}

TEST_F(ReceivingTest, AnUploadThatMovesKeepsItsPlace) {
  TestUpload moves, drips, waits;
  Reserve(moves, 6 * kMiB);
  Reserve(drips, 6 * kMiB);
  Begin(waits, 8 * kMiB);
  EXPECT_FALSE(Extend(waits, kWindow));
  uint64_t received = kWindow;
  for (int i = 1; i < 20; ++i) {
    received += 20 << 10;
    Receiving::Received(moves, received);
    Receiving::Received(drips, kWindow + 100 * static_cast<uint64_t>(i));
    Look(milliseconds(400 * i));
  }
  EXPECT_LT(receiving_.held_bytes(), 8 * kMiB) << "the one that drips has lost its place";
  EXPECT_GE(receiving_.held_bytes(), 6 * kMiB);
  EXPECT_EQ(receiving_.given_up(), 0u) << "one of them can go on";
  EXPECT_EQ(receiving_.waiting(), 1);
  Release(moves);
  Deliver();
  EXPECT_EQ(waits.rooms, 1);
  Release(drips);
  Release(waits);
}

TEST_F(ReceivingTest, OneThatIsThereIsNeitherStoppedNorGivenUp) {
  TestUpload complete, was_stopped, waits;
  Reserve(was_stopped, 2 * kMiB);
  EXPECT_EQ(receiving_.Extend(was_stopped, kMiB).granted, 2 * kMiB);
  Reserve(complete, 8 * kMiB);
  Receiving::Received(complete, 8 * kMiB);
  Begin(waits, 13 * kMiB);
  EXPECT_FALSE(Extend(waits, kWindow));
  Look(milliseconds(100));
  Look(milliseconds(1000));
  // It may send all of it, and so loses nothing; now it does.
  Receiving::Received(was_stopped, 2 * kMiB);
  EXPECT_EQ(receiving_.given_up(), 0u);
  for (int i = 2; i < 10; ++i) Look(milliseconds(1000 * i));
  EXPECT_EQ(receiving_.held_bytes(), 10 * kMiB + kWindow);
  // The first one has been taken: only the one that was stopped, and is complete now, is left.
  Release(complete);
  for (int i = 10; i < 20; ++i) Look(milliseconds(1000 * i));
  Deliver();
  EXPECT_FALSE(was_stopped.given_up) << "its memory comes back without its client";
  EXPECT_EQ(receiving_.given_up(), 0u);
  Release(was_stopped);
  Deliver();
  EXPECT_EQ(waits.rooms, 1);
  Release(waits);
}

TEST_F(ReceivingTest, WhenNobodyCanGoOnTheOneThatHasStoodLongestIsGivenUp) {
  TestUpload older, newer, waits;
  Reserve(older, 6 * kMiB);
  receiving_.Extend(older, 4 * kMiB);  // may send all of it, and so keeps all of it
  Reserve(newer, 6 * kMiB);
  receiving_.Extend(newer, 4 * kMiB);
  Begin(waits, 6 * kMiB);
  EXPECT_FALSE(Extend(waits, kWindow));
  Receiving::Received(newer, 5 * kMiB);
  Look(milliseconds(400));
  EXPECT_EQ(receiving_.given_up(), 0u);
  Look(milliseconds(1000));
  Deliver();
  EXPECT_EQ(receiving_.given_up(), 1u);
  EXPECT_TRUE(older.given_up);
  EXPECT_FALSE(newer.given_up);
  // Its memory is on its way: nobody else has to go, however often somebody looks.
  for (int i = 0; i < 10; ++i) Look(milliseconds(1000 + i));
  Deliver();
  EXPECT_EQ(receiving_.given_up(), 1u);
  EXPECT_FALSE(newer.given_up);
  Release(older);
  Deliver();
  EXPECT_EQ(waits.rooms, 1);
  Release(newer);
  Release(waits);
  // Given up is not for ever.
  older.given_up = false;
  EXPECT_EQ(Begin(older, 2 * kMiB), Begun::kReserved);
  Release(older);
  EXPECT_EQ(receiving_.held_bytes(), 0u);
}

TEST_F(ReceivingTest, NobodyIsGivenUpWhenOneThatWaitedCanGoOn) {
  TestUpload stands, next, last;
  Reserve(stands, 12 * kMiB);
  Begin(next, 10 * kMiB);
  EXPECT_FALSE(Extend(next, kWindow));
  Begin(last, 10 * kMiB);
  EXPECT_FALSE(Extend(last, kWindow));
  Look(milliseconds(100));
  Look(milliseconds(1000));  // stops the first, lets in the second
  Deliver();
  EXPECT_EQ(next.rooms, 1);
  EXPECT_EQ(receiving_.waiting(), 1);
  EXPECT_EQ(receiving_.given_up(), 0u);
  for (TestUpload* upload : {&stands, &next, &last}) Release(*upload);
}

TEST_F(ReceivingTest, DrippersDoNotKeepAFastUploadWaiting) {
  std::deque<TestUpload> drippers(20);
  for (TestUpload& upload : drippers) {
    if (Begin(upload, 2 * kMiB, 1) == Begun::kRefused) break;
    Extend(upload, kWindow);
  }
  TestUpload fast;
  // The drippers are as many as may wait: it must come before the last of them.
  Release(drippers[10]);
  ASSERT_NE(Begin(fast, 8 * kMiB, 2), Begun::kRefused);
  bool reserved = Extend(fast, kWindow);
  EXPECT_FALSE(reserved);
  int looks = 0;
  for (; !reserved && looks < 40; ++looks) {
    for (TestUpload& upload : drippers) {
      if (upload.given_up.exchange(false)) Release(upload);
    }
    Look(milliseconds(250 * looks));
    Deliver();
    reserved = fast.rooms > 0;
  }
  EXPECT_TRUE(reserved);
  EXPECT_LE(looks, 8) << "over two seconds";
  for (TestUpload& upload : drippers) Release(upload);
  Release(fast);
  EXPECT_EQ(receiving_.held_bytes(), 0u);
}

}  // namespace
}  // namespace quantd::admission
