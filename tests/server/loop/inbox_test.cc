// Many threads post, one takes: nothing is lost or arrives twice, and each thread's items stay in
// order.
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <thread>
#include <vector>

#include "loop_testing.h"
#include "server/loop/posted.h"

namespace quantd::loop {
namespace {

struct Item final : Posted {
  size_t producer = 0;
  size_t number = 0;
  std::atomic<bool> is_out{false};

 private:
  void Run() override {}
};

TEST(Inbox, KeepsTheOrderAndLeavesWhatIsReadyInFront) {
  Inbox inbox;
  ReadyList ready;
  std::deque<Item> items(7);
  EXPECT_TRUE(inbox.empty());
  inbox.MoveTo(ready);
  EXPECT_TRUE(ready.empty());
  ready.Push(items[0]);
  for (size_t i = 1; i < 4; ++i) inbox.Push(items[i]);
  EXPECT_FALSE(inbox.empty());
  inbox.MoveTo(ready);
  EXPECT_TRUE(inbox.empty());
  inbox.Push(items[4]);
  ready.Push(items[5]);
  inbox.MoveTo(ready);
  ready.Push(items[6]);
  for (const size_t expected : {0, 1, 2, 3, 5, 4, 6}) {
    ASSERT_FALSE(ready.empty());
    EXPECT_EQ(&ready.Pop(), &items[expected]);
  }
  EXPECT_TRUE(ready.empty());
}

TEST(Inbox, LosesNothingOfManyThreads) {
  constexpr size_t kProducers = 4;
  constexpr size_t kItems = 64;
  constexpr size_t kPosts = 20'000;
  Inbox inbox;
  std::vector<std::thread> producers;
  for (size_t producer = 0; producer < kProducers; ++producer) {
    producers.emplace_back([&inbox, producer] {
      // A few items, which are posted again as soon as they are taken.
      std::vector<Item> items(kItems);
      for (size_t i = 0; i < kPosts; ++i) {
        Item& item = items[i % kItems];
        if (i >= kItems) item.is_out.wait(false, std::memory_order_acquire);
        item.is_out.store(false, std::memory_order_relaxed);
        item.producer = producer;
        item.number = i;
        inbox.Push(item);
      }
      for (Item& item : items) item.is_out.wait(false, std::memory_order_acquire);
    });
  }
  std::vector<size_t> next(kProducers, 0);
  ReadyList ready;
  for (size_t taken = 0; taken < kProducers * kPosts;) {
    inbox.MoveTo(ready);
    if (ready.empty()) std::this_thread::yield();
    while (!ready.empty()) {
      auto& item = static_cast<Item&>(ready.Pop());
      EXPECT_EQ(item.number, next[item.producer]++);
      ++taken;
      item.is_out.store(true, std::memory_order_release);
      item.is_out.notify_one();
    }
  }
  for (std::thread& producer : producers) producer.join();
  EXPECT_TRUE(inbox.empty());
}

}  // namespace
}  // namespace quantd::loop
