// Uploads that stand still: what they lose, and which ones have to return everything.
#include <gtest/gtest.h>

#include <chrono>

#include "receiving_testing.h"
#include "server/memory/buffer.h"

namespace quantd::admission {
namespace {

using std::chrono::milliseconds;

TEST_F(ReceivingTest, AnUploadThatStandsLosesWhatItDoesNotUseAndAsksAgain) {
  TestUpload stands, waits;
  Reserve(stands, 10 * kMiB);
  const uint64_t granted = receiving_.Extend(stands, kMiB).granted;
  Wait(waits, 8 * kMiB);
  Look(milliseconds(100));  // so far, it may just have moved
  Look(milliseconds(400));
  EXPECT_EQ(receiving_.waiting(), 1);
  Look(milliseconds(1200));
  EXPECT_EQ(receiving_.waiting(), 0);
  Deliver();
  EXPECT_EQ(waits.rooms, 1);
  EXPECT_EQ(receiving_.held_bytes(), 8 * kMiB + memory::Pool::Footprint(granted));
  EXPECT_EQ(receiving_.given_up(), 0u);
  // The bytes that it was allowed to send still have their place. Then it waits, and keeps that.
  EXPECT_FALSE(Extend(stands, granted));
  EXPECT_EQ(receiving_.Extend(stands, granted).granted, granted);
  EXPECT_EQ(receiving_.waiting(), 1);
  EXPECT_EQ(receiving_.held_bytes(), 8 * kMiB + memory::Pool::Footprint(granted));
  Release(waits);
  EXPECT_EQ(stands.rooms, 1);
  EXPECT_TRUE(Extend(stands, granted));
  EXPECT_EQ(receiving_.held_bytes(), 10 * kMiB);
}

TEST_F(ReceivingTest, NobodyIsStoppedWhileNobodyWaits) {
  TestUpload stands;
  Reserve(stands, 10 * kMiB);
  for (int i = 1; i < 20; ++i) Look(milliseconds(1000 * i));
  EXPECT_EQ(receiving_.held_bytes(), 10 * kMiB);
}

TEST_F(ReceivingTest, AnUploadThatMovesKeepsItsPlace) {
  TestUpload there, moves, drips, waits;
  Reserve(there, kMiB / 2);
  Receiving::Received(there, kMiB / 2);
  Reserve(moves, 6 * kMiB);
  Reserve(drips, 6 * kMiB, 2);
  Wait(waits, 8 * kMiB, 3);
  uint64_t received = kWindow;
  for (int i = 1; i < 20; ++i) {
    received += 20 << 10;
    Receiving::Received(moves, received);
    Receiving::Received(drips, kWindow + 100 * static_cast<uint64_t>(i));
    Look(milliseconds(400 * i));
  }
  EXPECT_LT(receiving_.held_bytes(), 8 * kMiB) << "the one that drips has lost its place";
  EXPECT_GE(receiving_.held_bytes(), 6 * kMiB);
  Deliver();
  EXPECT_FALSE(moves.given_up);
  EXPECT_TRUE(drips.given_up) << "for longer than a call may stand still while others wait";
  EXPECT_EQ(receiving_.waiting(), 1);
  Release(moves);
  EXPECT_EQ(waits.rooms, 1);
}

TEST_F(ReceivingTest, OneThatIsThereIsNeitherStoppedNorGivenUp) {
  TestUpload complete, was_stopped, waits;
  Reserve(was_stopped, 2 * kMiB);
  EXPECT_EQ(receiving_.Extend(was_stopped, kMiB).granted, 2 * kMiB);
  Reserve(complete, 8 * kMiB);
  Receiving::Received(complete, 8 * kMiB);
  Wait(waits, 13 * kMiB, 2);
  Look(milliseconds(100));
  Look(milliseconds(1000));
  // It may send all of its bytes, and so loses nothing and is not behind uploads that wait; now it
  // sends them.
  EXPECT_TRUE(Extend(was_stopped, 2 * kMiB));
  EXPECT_EQ(receiving_.waiting(), 1);
  EXPECT_EQ(receiving_.given_up(), 0u);
  for (int i = 2; i < 10; ++i) Look(milliseconds(1000 * i));
  EXPECT_EQ(receiving_.held_bytes(), 10 * kMiB + kWindow);
  // The first one is taken: only the one that was stopped, and has arrived since, is left.
  Release(complete);
  for (int i = 10; i < 20; ++i) Look(milliseconds(1000 * i));
  Deliver();
  EXPECT_FALSE(was_stopped.given_up) << "its memory comes back without its client";
  EXPECT_EQ(receiving_.given_up(), 0u);
  Release(was_stopped);
  EXPECT_EQ(waits.rooms, 1);
}

// A compressed message may have arrived before all of its memory is reserved. It returns none
// before another upload does.
TEST_F(ReceivingTest, OneThatIsThereAndWaitsWithWhatItHoldsIsGivenUp) {
  TestUpload stands, complete, first;
  Reserve(stands, 6 * kMiB);
  Reserve(complete, 6 * kMiB, 2);
  Receiving::Received(complete, 6 * kMiB);
  Wait(first, kLarge, 3);
  Look(milliseconds(100));
  Look(milliseconds(1000));
  EXPECT_FALSE(Extend(stands, 6 * kMiB));
  Look(milliseconds(1100));
  EXPECT_EQ(receiving_.given_up(), 0u) << "one moves";
  Release(complete);
  Look(milliseconds(1200));
  Deliver();
  EXPECT_TRUE(stands.given_up);
  Release(stands);
  EXPECT_EQ(first.rooms, 1);
}

TEST_F(ReceivingTest, WhenNobodyCanGoOnTheOneThatHasStoodLongestIsGivenUp) {
  TestUpload older, newer, waits;
  Reserve(older, 6 * kMiB);
  receiving_.Extend(older, 4 * kMiB);  // may send all of it, so it keeps all of it
  Reserve(newer, 6 * kMiB, 2);
  receiving_.Extend(newer, 4 * kMiB);
  Wait(waits, 6 * kMiB, 3);
  Receiving::Received(newer, 5 * kMiB);
  Look(milliseconds(400));
  EXPECT_EQ(receiving_.given_up(), 0u);
  Look(milliseconds(1000));
  Deliver();
  EXPECT_EQ(receiving_.given_up(), 1u);
  EXPECT_TRUE(older.given_up);
  EXPECT_FALSE(newer.given_up);
  // Its memory will be back soon: no other one is given up, however often Look is called.
  for (int i = 0; i < 10; ++i) Look(milliseconds(1000 + i));
  Deliver();
  EXPECT_EQ(receiving_.given_up(), 1u);
  EXPECT_FALSE(newer.given_up);
  Release(older);
  EXPECT_EQ(waits.rooms, 1);
}

// An upload that stood still and waits again, with the memory that it holds, blocks the first one
// in the queue.
TEST_F(ReceivingTest, OneThatWaitsWithWhatItHoldsIsGivenUpWhenNobodyCanGoOn) {
  TestUpload stands, moves, first;
  Reserve(stands, 6 * kMiB);
  const uint64_t granted = receiving_.Extend(stands, kMiB).granted;
  Reserve(moves, 6 * kMiB, 2);
  Wait(first, kLarge, 3);
  Receiving::Received(moves, kMiB);
  Look(milliseconds(100));
  Receiving::Received(moves, 2 * kMiB);
  Look(milliseconds(1000));
  EXPECT_EQ(receiving_.held_bytes(), memory::Pool::Footprint(granted) + 6 * kMiB + kWindow);
  EXPECT_FALSE(Extend(stands, granted));
  EXPECT_EQ(receiving_.waiting(), 2);
  Receiving::Received(moves, 3 * kMiB);
  Look(milliseconds(1100));
  EXPECT_EQ(receiving_.given_up(), 0u) << "one moves";
  Release(moves);
  Look(milliseconds(1200));
  Deliver();
  EXPECT_EQ(receiving_.given_up(), 1u);
  EXPECT_TRUE(stands.given_up);
  EXPECT_FALSE(first.given_up);
  Release(stands);
  EXPECT_EQ(first.rooms, 1);
}

TEST_F(ReceivingTest, NobodyIsGivenUpWhenOneThatWaitedCanGoOn) {
  TestUpload stands, next, last;
  Reserve(stands, 12 * kMiB);
  Wait(next, 10 * kMiB, 2);
  Wait(last, 10 * kMiB, 3);
  Look(milliseconds(100));
  Look(milliseconds(1000));  // stops the first one, admits the second
  Deliver();
  EXPECT_EQ(next.rooms, 1);
  EXPECT_EQ(receiving_.waiting(), 1);
  EXPECT_EQ(receiving_.given_up(), 0u);
}

}  // namespace
}  // namespace quantd::admission
