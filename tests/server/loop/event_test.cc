// Events and the calls that await them: completed before, while and after they are awaited, from
// this thread and from others.
#include "server/loop/event.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "server/rpc/call.h"

namespace quantd::loop {
namespace {

using rpc::Call;
using rpc::Calls;

void WaitForNone(const Calls& calls) {
  while (calls.live() != 0) std::this_thread::yield();
}

Call AwaitOne(Calls& /*calls*/, Event& event, int& result) {
  const bool ok = co_await event;
  result = ok ? 1 : 0;
}

TEST(Event, CompletedBeforeItIsAwaited) {
  Calls calls;
  Event event;
  int result = -1;
  EXPECT_FALSE(event.ready());
  event.Complete(true);
  EXPECT_TRUE(event.ready());
  AwaitOne(calls, event, result);
  EXPECT_EQ(result, 1);
  EXPECT_EQ(calls.live(), 0);
}

TEST(Event, CompletedWhileItIsAwaited) {
  Calls calls;
  Event event;
  int result = -1;
  AwaitOne(calls, event, result);
  EXPECT_EQ(result, -1);
  EXPECT_EQ(calls.live(), 1);
  event.Complete(false);
  EXPECT_EQ(result, 0);
  EXPECT_EQ(calls.live(), 0);
}

TEST(Event, CanBeUsedAgainAfterReset) {
  Calls calls;
  Event event;
  for (const bool ok : {true, false, true}) {
    int result = -1;
    AwaitOne(calls, event, result);
    event.Complete(ok);
    EXPECT_EQ(result, ok ? 1 : 0);
    event.Reset();
    EXPECT_FALSE(event.ready());
  }
}

// Two events completed by two threads, awaited in one order; the last write must see what both
// threads wrote before they completed them.
Call AwaitTwo(Calls& /*calls*/, Event& first, Event& second, const int& a, const int& b,
              std::atomic<int>& sum) {
  const bool one = co_await first;
  const bool two = co_await second;
  sum += (one ? a : 0) + (two ? b : 0);
}

TEST(Event, ThreadsRaceToCompleteIt) {
  Calls calls;
  std::atomic<int> sum{0};
  constexpr int kRounds = 500;
  for (int round = 0; round < kRounds; ++round) {
    Event first, second;
    int a = 0, b = 0;
    std::atomic<int> ready{0};
    const auto complete = [&ready](Event& event, int& value) {
      ++ready;
      while (ready.load() < 3) std::this_thread::yield();
      value = 1;
      event.Complete(true);
    };
    std::thread one([&] { complete(first, a); });
    std::thread two([&] { complete(second, b); });
    ++ready;
    AwaitTwo(calls, first, second, a, b, sum);
    one.join();
    two.join();
  }
  WaitForNone(calls);
  EXPECT_EQ(sum, 2 * kRounds);
}

// A chain of hand-offs between two threads, like a call that moves between its loop and the thread
// that computes it.
class Worker {
 public:
  Worker() : thread_([this] { Run(); }) {}
  ~Worker() {
    Post(nullptr);
    thread_.join();
  }
  void Post(Event* event) {
    while (posted_.exchange(true, std::memory_order_acquire)) {
    }
    events_.push_back(event);
    posted_.store(false, std::memory_order_release);
  }

 private:
  void Run() {
    for (;;) {
      std::vector<Event*> taken;
      while (posted_.exchange(true, std::memory_order_acquire)) {
      }
      taken.swap(events_);
      posted_.store(false, std::memory_order_release);
      for (Event* event : taken) {
        if (event == nullptr) return;
        event->Complete(true);
      }
      std::this_thread::yield();
    }
  }
  std::atomic<bool> posted_{false};
  std::vector<Event*> events_;
  std::thread thread_;
};

Call Wander(Calls& /*calls*/, Worker& left, Worker& right, int steps, std::atomic<int>& finished) {
  int walked = 0;
  Event event;
  for (int i = 0; i < steps; ++i) {
    event.Reset();
    (i % 2 == 0 ? left : right).Post(&event);
    const bool ok = co_await event;
    if (ok) ++walked;
  }
  if (walked == steps) ++finished;
}

TEST(Call, WandersBetweenThreads) {
  Calls calls;
  std::atomic<int> finished{0};
  {
    Worker left, right;
    for (int i = 0; i < 50; ++i) Wander(calls, left, right, 100, finished);
    WaitForNone(calls);
  }
  EXPECT_EQ(finished, 50);
  EXPECT_EQ(calls.live(), 0);
}

}  // namespace
}  // namespace quantd::loop
