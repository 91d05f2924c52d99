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

}  // namespace
}  // namespace quantd::process
