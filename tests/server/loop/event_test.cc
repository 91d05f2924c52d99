// Events and the calls that await them: completed before and while they are awaited, from this
// thread and from others.
#include "server/loop/event.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "server/rpc/call.h"

namespace quantd::loop {
namespace {

using rpc::Call;
using rpc::Calls;

Call AwaitOne(Calls& /*calls*/, Event& event, int& result) {
  const bool ok = co_await event;
  result = ok ? 1 : 0;
}

// Completed while it is awaited and before, with either result.
TEST(Event, CanBeUsedAgainAfterReset) {
  Calls calls;
  Event event;
  for (int i = 0; i < 8; ++i) {
    const bool ok = i % 2 == 0;
    const bool early = i % 4 < 2;
    int result = -1;
    if (early) event.Complete(ok);
    EXPECT_EQ(event.ready(), early);
    AwaitOne(calls, event, result);
    EXPECT_EQ(calls.live(), early ? 0 : 1);
    if (!early) event.Complete(ok);
    EXPECT_EQ(result, ok ? 1 : 0);
    EXPECT_EQ(calls.live(), 0);
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
  EXPECT_EQ(calls.live(), 0);
  EXPECT_EQ(sum, 2 * kRounds);
}

}  // namespace
}  // namespace quantd::loop
