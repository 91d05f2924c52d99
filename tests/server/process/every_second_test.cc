#include "server/process/every_second.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>

namespace quantd::process {
namespace {

using Clock = std::chrono::steady_clock;

TEST(EverySecond, DoesItsTasksInTheirOrder) {
  std::string done;
  std::atomic<int> rounds{0};
  EverySecond every_second;
  every_second.Do([&] { done += 'a'; });
  every_second.Do([&] {
    done += 'b';
    ++rounds;
    rounds.notify_all();
  });
  const Clock::time_point begin = Clock::now();
  every_second.Start();
  rounds.wait(0);
  EXPECT_GE(Clock::now() - begin, std::chrono::seconds(1));
  rounds.wait(1);
  EXPECT_GE(Clock::now() - begin, std::chrono::seconds(2));
  every_second.Stop();
  EXPECT_EQ(done.substr(0, 4), "abab");
}

TEST(EverySecond, CanBeWokenAndStops) {
  std::atomic<int> rounds{0};
  EverySecond every_second;
  every_second.Do([&] {
    ++rounds;
    rounds.notify_all();
  });
  every_second.Wake();
  every_second.Start();
  rounds.wait(0);
  every_second.Stop();
  const int at_end = rounds;
  every_second.Wake();
  EXPECT_EQ(rounds, at_end);
}

TEST(EverySecond, StopsWithoutATaskThatHangs) {
  // The thread is detached afterwards, and uses these until it ends.
  struct Hanging {
    std::atomic<bool> begun{false}, may_end{false};
    EverySecond every_second;
  };
  static auto* const hanging = new Hanging;
  hanging->every_second.Do([] {
    hanging->begun = true;
    hanging->begun.notify_all();
    hanging->may_end.wait(false);
  });
  hanging->every_second.Wake();
  hanging->every_second.Start();
  hanging->begun.wait(false);
  const Clock::time_point begin = Clock::now();
  EXPECT_FALSE(hanging->every_second.Stop(begin + std::chrono::milliseconds(100)));
  EXPECT_GE(Clock::now() - begin, std::chrono::milliseconds(100));
  hanging->may_end = true;
  hanging->may_end.notify_all();

  EverySecond idle;
  EXPECT_TRUE(idle.Stop(Clock::now()));
  idle.Do([] {});
  idle.Start();
  EXPECT_TRUE(idle.Stop(Clock::now() + std::chrono::hours(1)));
}

}  // namespace
}  // namespace quantd::process
