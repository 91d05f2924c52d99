#include "server/log/mailbox.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <thread>
#include <vector>

namespace quantd {
namespace {

TEST(Mailbox, TheOldestMakesRoom) {
  Mailbox<std::shared_ptr<int>> box(2);
  const auto oldest = std::make_shared<int>(1);
  const auto second = std::make_shared<int>(2), third = std::make_shared<int>(3);
  EXPECT_FALSE(box.PushOver(oldest));
  EXPECT_FALSE(box.PushOver(second));
  EXPECT_EQ(oldest.use_count(), 2);
  EXPECT_TRUE(box.PushOver(third));
  EXPECT_EQ(oldest.use_count(), 1);
  EXPECT_EQ(box.Take(), second);
  EXPECT_EQ(box.Take(), third);
  EXPECT_FALSE(box.PushOver(oldest));
}

TEST(Mailbox, ClosedGivesNothingThatIsStillInIt) {
  Mailbox<int> box(1);
  EXPECT_FALSE(box.PushOver(1));
  box.Close();
  EXPECT_EQ(box.Take(), std::nullopt);
  EXPECT_EQ(box.Take(), std::nullopt);
}

// The thread waits between most of the items, and at the end.
TEST(Mailbox, WakesTheThreadThatWaits) {
  constexpr int kItems = 200;
  Mailbox<int> box(kItems);
  Mailbox<int> back(1);
  std::vector<int> taken;
  std::thread thread([&] {
    while (const std::optional<int> item = box.Take()) {
      taken.push_back(*item);
      back.PushOver(*item);
    }
  });
  for (int i = 0; i < kItems; ++i) {
    box.PushOver(i);
    EXPECT_EQ(back.Take(), i);
  }
  box.Close();
  thread.join();
  EXPECT_EQ(taken.size(), static_cast<size_t>(kItems));
}

}  // namespace
}  // namespace quantd
