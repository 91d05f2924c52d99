#include "server/mailbox/mailbox.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <thread>
#include <vector>

namespace quantd {
namespace {

TEST(Mailbox, GivesInOrder) {
  Mailbox<int> box(3);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(box.Push(i));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(box.Take(), i);
}

TEST(Mailbox, TakesSoManyAndNoMore) {
  Mailbox<std::shared_ptr<int>> box(2);
  const auto item = std::make_shared<int>(0);
  EXPECT_TRUE(box.Push(item));
  EXPECT_TRUE(box.Push(item));
  EXPECT_FALSE(box.Push(item));
  EXPECT_EQ(item.use_count(), 3);  // the one that found no room is gone
  EXPECT_EQ(box.Take(), item);
  EXPECT_TRUE(box.Push(item));
}

TEST(Mailbox, TheOldestMakesRoom) {
  Mailbox<int> box(2);
  EXPECT_FALSE(box.PushOver(1));
  EXPECT_FALSE(box.PushOver(2));
  EXPECT_TRUE(box.PushOver(3));
  EXPECT_FALSE(box.Push(4));
  EXPECT_EQ(box.Take(), 2);
  EXPECT_EQ(box.Take(), 3);
  EXPECT_FALSE(box.PushOver(5));
}

TEST(Mailbox, EarlierLanesComeFirstAndEachHasItsRoom) {
  Mailbox<int, 3> box(1);
  EXPECT_TRUE(box.Push(3, 2));
  EXPECT_TRUE(box.Push(2, 1));
  EXPECT_TRUE(box.Push(1));
  EXPECT_FALSE(box.Push(0, 0));
  EXPECT_FALSE(box.Push(0, 2));
  EXPECT_TRUE(box.PushOver(4));
  EXPECT_EQ(box.Take(), 4);
  EXPECT_EQ(box.Take(), 2);
  EXPECT_FALSE(box.PushOver(1));
  EXPECT_EQ(box.Take(), 1);
  EXPECT_EQ(box.Take(), 3);
}

TEST(Mailbox, ClosedGivesNothingThatIsStillInIt) {
  Mailbox<int> box(1);
  EXPECT_TRUE(box.Push(1));
  box.Close();
  EXPECT_EQ(box.Take(), std::nullopt);
  EXPECT_EQ(box.Take(), std::nullopt);
}

// The thread waits between most of the items, and at the end.
TEST(Mailbox, WakesTheThreadThatWaits) {
  constexpr int kItems = 200;
  Mailbox<int, 2> box(kItems);
  Mailbox<int> back(1);
  std::vector<int> taken;
  std::thread thread([&] {
    while (const std::optional<int> item = box.Take()) {
      taken.push_back(*item);
      back.Push(*item);
    }
  });
  for (int i = 0; i < kItems; ++i) {
    if (i % 2 == 0) {
      box.Push(i, static_cast<size_t>(i / 2 % 2));
    } else {
      box.PushOver(i);
    }
    EXPECT_EQ(back.Take(), i);
  }
  box.Close();
  thread.join();
  EXPECT_EQ(taken.size(), static_cast<size_t>(kItems));
}

}  // namespace
}  // namespace quantd
