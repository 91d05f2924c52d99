// Threads that give up the lead, compute, and are available again.
#include "server/scheduling/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "../loop/loop_testing.h"
#include "server/loop/loop.h"

namespace quantd::scheduling {
namespace {

// A thread pool and its loops.
struct Ship {
  Ship(int loop_count, int spare) {
    std::vector<loop::Loop*> all;
    for (int i = 0; i < loop_count; ++i) all.push_back(loops.emplace_back(loop::NewLoop()).get());
    thread_pool.emplace(all, spare);
  }
  loop::Loop& loop(size_t index = 0) { return *loops[index]; }

  std::vector<std::unique_ptr<loop::Loop>> loops;
  std::optional<ThreadPool> thread_pool;
};

TEST(ThreadPool, LeadsEveryLoopByAThreadOfItsOwn) {
  Ship ship(3, 2);
  EXPECT_EQ(ship.thread_pool->threads(), 5);
  std::set<std::thread::id> leaders;
  for (size_t i = 0; i < 3; ++i) {
    loop::RunOn(ship.loop(i), [&] {
      EXPECT_EQ(loop::Loop::Here(), &ship.loop(i));
      leaders.insert(std::this_thread::get_id());
    });
  }
  EXPECT_EQ(leaders.size(), 3u);
  EXPECT_EQ(ship.thread_pool->computing(), 0);
}

// What was ready, and what was to run at the end of the iteration, is left to the next leader.
TEST(ThreadPool, WhatTheLeaderHadLeftToDoIsDoneByTheNextOne) {
  Ship ship(1, 1);
  std::latch all(3);
  std::latch computed(1);
  const auto led = [&] {
    EXPECT_TRUE(ship.loop().leading());
    all.count_down();
  };
  loop::Job ready(led), ready_too(led), at_end(led);
  loop::Job computes([&] {
    ship.loop().Post(ready);
    ship.loop().AtIterationEnd(at_end);
    ship.loop().Post(ready_too);
    ASSERT_TRUE(ship.thread_pool->HandOver());
    all.wait();
    computed.count_down();
  });
  ship.loop().Post(computes);
  computed.wait();
}

TEST(ThreadPool, HandsNothingOverWhenNobodyIsParkedOrNothingIsLed) {
  Ship ship(1, 1);
  EXPECT_FALSE(ship.thread_pool->HandOver()) << "this thread leads nothing";
  std::latch first_computes(1), end(1);
  std::latch both(2);
  loop::Job first([&] {
    ASSERT_TRUE(ship.thread_pool->HandOver());
    EXPECT_FALSE(ship.thread_pool->HandOver()) << "it leads nothing any more";
    first_computes.count_down();
    end.wait();
    both.count_down();
  });
  loop::Job second([&] {
    EXPECT_FALSE(ship.thread_pool->HandOver());
    EXPECT_TRUE(ship.loop().leading()) << "but it was taken away";
    EXPECT_EQ(ship.thread_pool->computing(), 1);
    both.count_down();
  });
  ship.loop().Post(first);
  first_computes.wait();
  ship.loop().Post(second);
  // The loop is still led: this runs after `second`.
  loop::RunOn(ship.loop(), [] {});
  end.count_down();
  both.wait();
}

TEST(ThreadPool, EndsWithAllItsThreadsWhateverTheyDo) {
  for (int round = 0; round < 20; ++round) {
    Ship ship(2, 3);
    std::latch started(2);
    std::atomic<int> ended{0};
    const auto compute = [&] {
      EXPECT_TRUE(ship.thread_pool->HandOver());
      started.count_down();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));  // mostly, the ship ends before
      ended.fetch_add(1);
    };
    loop::Job first(compute), second(compute);
    ship.loop(0).Post(first);
    ship.loop(1).Post(second);
    started.wait();
    ship.thread_pool.reset();
    EXPECT_EQ(ended.load(), 2) << "a thread was not joined";
  }
}

// A call that computes and comes back, again and again.
loop::Detached ComputeOften(Ship& ship, size_t index, std::atomic<int>& inside, std::latch& left) {
  loop::Lead lead(ship.loop(index));
  for (int i = 0; i < 300; ++i) {
    co_await lead;
    EXPECT_EQ(inside.fetch_add(1), 0) << "two threads lead one loop";
    std::this_thread::yield();
    inside.fetch_sub(1);
    ship.thread_pool->HandOver();  // if one is parked
    std::this_thread::yield();
  }
  co_await lead;
  left.count_down();
}

TEST(ThreadPool, HasOneLeaderALoopUnderManyHandOvers) {
  constexpr int kCalls = 16;
  Ship ship(2, 3);
  std::atomic<int> inside[2] = {};
  std::latch left(kCalls);
  for (size_t i = 0; i < kCalls; ++i) {
    loop::RunOn(ship.loop(i % 2), [&] { ComputeOften(ship, i % 2, inside[i % 2], left); });
  }
  left.wait();
}

}  // namespace
}  // namespace quantd::scheduling
