// A call that returns to the thread that leads, from any thread.
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "loop_testing.h"
#include "server/loop/loop.h"
#include "server/scheduling/thread_pool.h"

namespace quantd::loop {
namespace {

Detached Stay(Loop& loop, bool& stayed) {
  Lead lead(loop);
  const std::thread::id before = std::this_thread::get_id();
  co_await lead;
  co_await lead;
  stayed = std::this_thread::get_id() == before && loop.leading();
}

TEST(Lead, StaysWhereItLeads) {
  bool stayed = false;
  LedLoop loop;
  RunOn(*loop, [&] {
    Stay(*loop, stayed);
    EXPECT_TRUE(stayed) << "it made a detour through the loop";
  });
}

Detached Travel(Loop& first, Loop& second, std::promise<int>& done) {
  Lead to_first(first);
  Lead to_second(second);
  int arrived = 0;
  for (int i = 0; i < 1000; ++i) {
    co_await to_first;
    arrived += first.leading() && !second.leading() ? 1 : 0;
    co_await to_second;
    arrived += second.leading() && !first.leading() ? 1 : 0;
  }
  done.set_value(arrived);
}

TEST(Lead, GoesToTheThreadThatLeadsAsOftenAsItLikes) {
  // Declared after both loops, so that its threads end before either: one may still wake the other.
  const std::unique_ptr<Loop> first = NewLoop();
  const std::unique_ptr<Loop> second = NewLoop();
  scheduling::ThreadPool thread_pool({first.get(), second.get()}, 0);
  std::promise<int> done;
  Travel(*first, *second, done);
  EXPECT_EQ(done.get_future().get(), 2000);
}

}  // namespace
}  // namespace quantd::loop
