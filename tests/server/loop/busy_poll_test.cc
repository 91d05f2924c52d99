// When a loop polls before it sleeps.
#include "server/loop/busy_poll.h"

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <future>
#include <thread>

#include "loop_testing.h"

namespace quantd::loop {
namespace {

constexpr BusyPoll::Limits kLimits{std::chrono::microseconds(20), 2};

// How many of `waits` begin with polling that ends with `found`.
int Polls(BusyPoll& poll, int waits, bool found) {
  int polls = 0;
  for (int i = 0; i < waits; ++i) {
    if (!poll.IsWorthIt()) continue;
    ++polls;
    poll.Ended(found);
  }
  return polls;
}

// After waits that found nothing or something, in turn.
TEST(BusyPoll, PollsWhileItPays) {
  BusyPoll poll(kLimits);
  EXPECT_EQ(Polls(poll, 6400, false), 100) << "one wait in 64 finds out whether it pays";
  EXPECT_EQ(Polls(poll, 63, true), 0);
  EXPECT_EQ(Polls(poll, 1, true), 1);
  EXPECT_EQ(Polls(poll, 1000, true), 1000);
  EXPECT_EQ(Polls(poll, 60, false), 3) << "the credit of at most 8 pays for three failures";
  Polls(poll, 64, true);
  int polls = 0;
  for (int i = 0; i < 3000; ++i) polls += Polls(poll, 1, i % 3 != 0);
  EXPECT_LT(polls, 300) << "two of three are too few";
  BusyPoll never(BusyPoll::Limits{});
  EXPECT_EQ(Polls(never, 1000, true), 0);
}

// Others may need the cores.
TEST(BusyPoll, NotWhileTooManyLoopsAreAwake) {
  BusyPoll poll(kLimits), second(kLimits);
  Polls(poll, 64, true);
  EXPECT_EQ(Polls(poll, 10, true), 10);
  const BusyPoll never({});  // counts for nothing
  EXPECT_EQ(Polls(poll, 10, true), 10);
  {
    const BusyPoll third(kLimits);
    EXPECT_EQ(Polls(poll, 10, true), 0);
    EXPECT_FALSE(poll.MayGoOn());
    second.FallsAsleep();
    EXPECT_EQ(Polls(poll, 10, true), 10);
    second.Wakes();
  }
  EXPECT_EQ(Polls(poll, 10, true), 10);
}

// Tells of each number that is written to an eventfd.
class Numbers final : public Watcher {
 public:
  ~Numbers() { close(fd_); }
  int fd() const { return fd_; }
  // Waits until it has been told.
  void Write() {
    std::promise<void> told;
    told_ = &told;
    const uint64_t number = 1;
    EXPECT_EQ(write(fd_, &number, sizeof(number)), sizeof(number));
    told.get_future().wait();
  }

 private:
  void OnReady(uint32_t) override {
    uint64_t number = 0;
    EXPECT_EQ(read(fd_, &number, sizeof(number)), sizeof(number));
    told_->set_value();
  }
  const int fd_ = eventfd(0, 0);
  std::promise<void>* told_ = nullptr;
};

// A loop that would poll for an hour still runs what is posted, reads sockets and stops.
TEST(BusyPoll, EndsWhenThereIsSomethingToDo) {
  const auto loop = *Loop::Create({std::chrono::hours(1), 2});
  std::thread leader([&] { loop->Lead(); });
  Numbers numbers;
  RunOn(*loop, [&] { loop->Watch(numbers.fd(), EPOLLIN, numbers); });
  for (int i = 0; i < 200; ++i) {
    RunOn(*loop, [] {});
    numbers.Write();
  }
  loop->Stop();
  leader.join();
}

TEST(BusyPoll, LoopsThatSleepLetOthersPoll) {
  const BusyPoll poll({std::chrono::microseconds(20), 1});
  const auto loop = *Loop::Create({std::chrono::microseconds(20), 0});
  EXPECT_FALSE(poll.MayGoOn());
  std::thread leader([&] { loop->Lead(); });
  while (!poll.MayGoOn()) std::this_thread::yield();
  loop->Stop();
  leader.join();
  EXPECT_FALSE(poll.MayGoOn());
}

}  // namespace
}  // namespace quantd::loop
