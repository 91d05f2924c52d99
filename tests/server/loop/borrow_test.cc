// A thread that has computed borrows the lead of its loop while the leader sleeps.
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <utility>

#include "loop_testing.h"
#include "server/loop/lead.h"
#include "ship.h"

namespace quantd::loop {
namespace {

using std::chrono::milliseconds;

class Borrow : public testing::Test {
 protected:
  // Computes until all other threads sleep, and then runs `led` where the call leads.
  Detached ComputeThenLead(std::function<void()> led) {
    Lead lead(loop());
    EXPECT_TRUE(ship_.thread_pool->HandOver());
    computed_ = std::this_thread::get_id();
    WaitUntilAllSleep();
    co_await lead;
    EXPECT_TRUE(loop().leading());
    EXPECT_EQ(std::this_thread::get_id(), computed_) << "the leader has been woken";
    led();
  }
  // Runs ComputeThenLead on the loop, and waits until `led` has set `done_`.
  void Run(const std::function<void()>& led) {
    Job job([&] { ComputeThenLead(led); });
    loop().Post(job);
    done_.get_future().wait();
    // Afterwards the leader leads, and nobody computes.
    WaitUntilAllSleep();
    EXPECT_EQ(ship_.thread_pool->computing(), 0);
    RunOn(loop(), [this] { EXPECT_NE(std::this_thread::get_id(), computed_); });
  }
  Loop& loop() { return ship_.loop(); }

  Ship ship_{1, 1};
  std::thread::id computed_;
  std::promise<void> done_;
};

TEST_F(Borrow, TheIterationEndsOnTheSameThread) {
  Job at_end([this] {
    EXPECT_TRUE(loop().leading());
    EXPECT_EQ(std::this_thread::get_id(), computed_);
    done_.set_value();
  });
  Run([&] { loop().AtIterationEnd(at_end); });
}

TEST_F(Borrow, WhatIsPostedMeanwhileIsRun) {
  Job posted([this] {
    EXPECT_EQ(std::this_thread::get_id(), computed_);
    done_.set_value();
  });
  Run([&] { std::thread([&] { loop().Post(posted); }).join(); });
}

// When the thread has looked for the last time, but has not yet given the lead back.
TEST_F(Borrow, WhatIsPostedAtTheLastMomentIsRun) {
  Job posted([this] { done_.set_value(); });
  Job at_end([&] { std::thread([&] { loop().Post(posted); }).join(); });
  Run([&] { loop().AtIterationEnd(at_end); });
}

TEST_F(Borrow, TheLeaderIsWokenForATimerThatIsEarlierThanItsOwn) {
  struct Alarm final : Timer {
    explicit Alarm(std::function<void()> function) : fire(std::move(function)) {}
    void Fire() override { fire(); }
    const std::function<void()> fire;
  } alarm([this] {
    EXPECT_NE(std::this_thread::get_id(), computed_);
    done_.set_value();
  });
  Run([&] { loop().timers().Set(alarm, Clock::now() + milliseconds(20)); });
}

TEST_F(Borrow, ACallThatComputesAgainLeavesTheLoopToTheLeader) {
  std::promise<void> led_again;
  Job ready([&] {
    EXPECT_TRUE(loop().leading());
    EXPECT_NE(std::this_thread::get_id(), computed_);
    led_again.set_value();
  });
  Run([&] {
    loop().Post(ready);
    EXPECT_TRUE(ship_.thread_pool->HandOver());
    EXPECT_EQ(Loop::Here(), nullptr);
    EXPECT_EQ(ship_.thread_pool->computing(), 1);
    led_again.get_future().wait();  // for ever, if nobody leads
    done_.set_value();
  });
}

// The leader has been woken with an event of a watcher that is gone when it leads again.
TEST_F(Borrow, EventsOfBeforeAreLookedForAgain) {
  struct Gone final : Watcher {
    void OnReady(uint32_t /*events*/) override { ADD_FAILURE() << "it is gone"; }
  };
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  auto watcher = std::make_unique<Gone>();
  RunOn(loop(), [&] { ASSERT_TRUE(loop().Watch(ends[0], EPOLLIN, *watcher)); });
  Run([&] {
    ASSERT_EQ(write(ends[1], "x", 1), 1);
    std::this_thread::sleep_for(milliseconds(50));  // the leader wakes up
    loop().Unwatch(ends[0]);
    watcher.reset();
    done_.set_value();
  });
  close(ends[0]);
  close(ends[1]);
}

TEST_F(Borrow, OnlyThreadsOfAPoolDo) { EXPECT_FALSE(loop().Borrow()); }

TEST_F(Borrow, NotFromALeaderThatIsAwake) {
  std::promise<void> awake, goes_on;
  const std::shared_future<void> is_awake = awake.get_future().share();
  Job works([&] {
    awake.set_value();
    goes_on.get_future().wait();
  });
  const auto call = [&]() -> Detached {
    Lead lead(loop());
    loop().Post(works);
    EXPECT_TRUE(ship_.thread_pool->HandOver());
    const std::thread::id computed = std::this_thread::get_id();
    is_awake.wait();
    co_await lead;
    EXPECT_NE(std::this_thread::get_id(), computed);
    done_.set_value();
  };
  Job begins([&] { call(); });
  loop().Post(begins);
  // The call has gone to the loop when its thread is parked.
  is_awake.wait();
  while (ship_.thread_pool->computing() != 0) std::this_thread::yield();
  goes_on.set_value();
  done_.get_future().wait();
}

}  // namespace
}  // namespace quantd::loop
