// Uploads that stand still lose their memory to those that wait, and no others do.
#include <gtest/gtest.h>

#include "receiving_testing.h"

namespace quantd::admission {
namespace {

TEST_F(ReceivingTest, AnUploadThatStandsLosesItsMemoryToOneThatWaits) {
  TestUpload stands, waits;
  Reserve(stands, 10 * kMiB);
  receiving_.Extend(stands, kMiB);
  Wait(waits, 8 * kMiB, 2);
  receiving_.Look();
  Deliver();
  EXPECT_FALSE(stands.given_up) << "so far, it may just have moved";
  StandStill();
  EXPECT_TRUE(stands.given_up);
  EXPECT_EQ(waits.rooms, 0) << "the memory is not back yet";
  EXPECT_EQ(receiving_.waiting(), 1);
  EXPECT_EQ(receiving_.held_bytes(), 10 * kMiB + kWindow);
  Release(stands);
  EXPECT_EQ(waits.rooms, 1);
  EXPECT_TRUE(Extend(waits, kWindow));
  EXPECT_EQ(receiving_.held_bytes(), 8 * kMiB);
}

TEST_F(ReceivingTest, NobodyIsGivenUpWhileNobodyWaits) {
  TestUpload stands;
  Reserve(stands, 10 * kMiB);
  StandStill();
  EXPECT_FALSE(stands.given_up);
  EXPECT_EQ(receiving_.held_bytes(), 10 * kMiB);
}

TEST_F(ReceivingTest, AnUploadThatMovesKeepsItsPlace) {
  TestUpload there, moves, drips, waits;
  Reserve(there, kMiB / 2);
  there.call().Busy();
  Reserve(moves, 6 * kMiB);
  Reserve(drips, 6 * kMiB, 2);
  Wait(waits, 7 * kMiB, 3);
  std::this_thread::sleep_for(kStall + std::chrono::milliseconds(20));
  moves.call().Moved(loop::Clock::now(), 20 << 10, 20 << 10);
  drips.call().Moved(loop::Clock::now(), 20, 20 << 10);
  receiving_.Look();
  Deliver();
  EXPECT_FALSE(moves.given_up);
  EXPECT_TRUE(drips.given_up);
  EXPECT_EQ(receiving_.waiting(), 1);
  Release(drips);
  EXPECT_EQ(waits.rooms, 1);
}

// It waits for the server, which has not taken it yet.
TEST_F(ReceivingTest, OneThatIsThereIsNotGivenUp) {
  TestUpload complete, waits;
  Reserve(complete, 8 * kMiB);
  complete.call().Busy();
  Wait(waits, 13 * kMiB, 2);
  StandStill();
  EXPECT_FALSE(complete.given_up);
  EXPECT_EQ(receiving_.waiting(), 1);
  Release(complete);
  EXPECT_EQ(waits.rooms, 1);
}

TEST_F(ReceivingTest, AsManyAreGivenUpAsTheNextOneNeeds) {
  TestUpload older, newer, other, waits;
  Reserve(older, 4 * kMiB);
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  Reserve(newer, 4 * kMiB);
  Reserve(other, 4 * kMiB, 2);
  Wait(waits, 8 * kMiB, 3);
  StandStill();
  EXPECT_TRUE(older.given_up) << "of the peer with the most, for the longest time";
  // Its memory will be back soon: no other one is given up, however often this is called.
  for (int i = 0; i < 10; ++i) receiving_.Look();
  Deliver();
  EXPECT_FALSE(newer.given_up);
  EXPECT_FALSE(other.given_up);
  Release(older);
  EXPECT_TRUE(newer.given_up || other.given_up);
  EXPECT_FALSE(newer.given_up && other.given_up);
  EXPECT_EQ(waits.rooms, 0);
  Release(newer.given_up ? newer : other);
  EXPECT_EQ(waits.rooms, 1);
}

TEST_F(ReceivingTest, WhoMayNotWaitTakesThePlaceOfOneThatStands) {
  Receiving receiving(kBudget, kWindow, 0, kStall);
  TestUpload stands, other;
  ASSERT_EQ(receiving.Begin(stands, kLarge, stands.Of(*loop_, 1), *loop_), Begun::kReserved);
  EXPECT_EQ(receiving.Begin(other, kMiB, other.Of(*loop_, 2), *loop_), Begun::kRefused);
  std::this_thread::sleep_for(kStall);
  EXPECT_EQ(receiving.Begin(other, kMiB, other.Of(*loop_, 2), *loop_), Begun::kRefused);
  Deliver();
  EXPECT_TRUE(stands.given_up);
  receiving.Release(stands);
  EXPECT_EQ(receiving.Begin(other, kMiB, other.Of(*loop_, 2), *loop_), Begun::kReserved);
  receiving.Release(other);
  EXPECT_EQ(receiving.held_bytes(), 0U);
}

}  // namespace
}  // namespace quantd::admission
