// A loop's iterations: what is posted, completed, watched and set, in which order, on which thread.
#include "server/loop/loop.h"

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "loop_testing.h"

namespace quantd::loop {
namespace {

class Pipe {
 public:
  Pipe() { EXPECT_EQ(pipe(ends_), 0); }
  ~Pipe() {
    close(ends_[0]);
    close(ends_[1]);
  }
  int out() const { return ends_[0]; }
  void Put(char c) const { EXPECT_EQ(write(ends_[1], &c, 1), 1); }
  char Get() const {
    char c = '\0';
    EXPECT_EQ(read(ends_[0], &c, 1), 1);
    return c;
  }

 private:
  int ends_[2];
};

class FunctionWatcher final : public Watcher {
 public:
  explicit FunctionWatcher(std::function<void(uint32_t)> on_ready)
      : on_ready_(std::move(on_ready)) {}
  void OnReady(uint32_t events) override { on_ready_(events); }

 private:
  const std::function<void(uint32_t)> on_ready_;
};

class FunctionTimer final : public Timer {
 public:
  explicit FunctionTimer(std::function<void()> fire) : fire_(std::move(fire)) {}

 private:
  void Fire() override { fire_(); }
  const std::function<void()> fire_;
};

// Posts `first` and leads the loop on this thread until it is stopped.
void LeadUntil(Loop& loop, Job& first) {
  loop.Post(first);
  loop.Lead();
  EXPECT_FALSE(loop.leading());
}

TEST(Loop, APostFromAnotherThreadWakesAWaitingLoop) {
  LedLoop loop;
  EXPECT_FALSE(loop->leading());
  EXPECT_EQ(Loop::Here(), nullptr);
  // One at a time, so that the loop waits, or is about to wait, whenever the next one arrives.
  for (int i = 0; i < 5'000; ++i) {
    bool ran = false;
    RunOn(*loop, [&] { ran = loop->leading() && Loop::Here() == loop.get(); });
    ASSERT_TRUE(ran);
  }
}

Detached Await(Event& event, std::function<void(bool)> resumed) {
  const bool ok = co_await event;
  resumed(ok);
}

TEST(Loop, CompleteResumesACallOnTheThreadThatLeads) {
  LedLoop loop;
  for (const bool wanted : {true, false}) {
    for (const bool from_leader : {true, false}) {
      Event event;
      std::promise<bool> resumed;
      bool in_the_middle = false;
      RunOn(*loop, [&] {
        Await(event, [&](bool ok) {
          EXPECT_TRUE(loop->leading());
          EXPECT_FALSE(in_the_middle) << "resumed inside of Complete";
          resumed.set_value(ok);
        });
        if (!from_leader) return;
        in_the_middle = true;
        loop->Complete(event, wanted);
        in_the_middle = false;
      });
      if (!from_leader) loop->Complete(event, wanted);
      EXPECT_EQ(resumed.get_future().get(), wanted);
    }
  }
}

TEST(Loop, TellsAWatcherWhatIsReadyUntilItIsUnwatched) {
  LedLoop loop;
  Pipe pipe;
  std::string got;
  std::promise<void> got_three;
  FunctionWatcher watcher([&](uint32_t events) {
    EXPECT_EQ(events, uint32_t{EPOLLIN});
    got += pipe.Get();  // one at a time: level triggered
    if (got.size() == 3) got_three.set_value();
  });
  RunOn(*loop, [&] { EXPECT_TRUE(loop->Watch(pipe.out(), EPOLLIN, watcher)); });
  pipe.Put('a');
  pipe.Put('b');
  pipe.Put('c');
  got_three.get_future().wait();

  RunOn(*loop, [&] { loop->Rewatch(pipe.out(), 0, watcher); });
  pipe.Put('d');
  // Two iterations; each of them would have reported it.
  RunOn(*loop, [] {});
  RunOn(*loop, [] {});
  RunOn(*loop, [&] {
    EXPECT_EQ(got, "abc");
    loop->Rewatch(pipe.out(), EPOLLIN, watcher);
  });
  while (true) {
    size_t size = 0;
    RunOn(*loop, [&] { size = got.size(); });
    if (size == 4) break;
  }
  RunOn(*loop, [&] { loop->Unwatch(pipe.out()); });
  pipe.Put('e');
  RunOn(*loop, [] {});
  RunOn(*loop, [&] {
    EXPECT_EQ(got, "abcd");
    EXPECT_FALSE(loop->Watch(-1, EPOLLIN, watcher));
  });
}

TEST(Loop, AWatcherMayUnwatchAndDestroyItself) {
  LedLoop loop;
  Pipe pipe, other;
  std::promise<void> gone;
  std::promise<void> other_told;
  std::unique_ptr<FunctionWatcher> watcher;
  watcher = std::make_unique<FunctionWatcher>([&](uint32_t) {
    loop->Unwatch(pipe.out());
    // A copy of the function: the running one is destroyed with the watcher.
    const auto done = [&gone] { gone.set_value(); };
    watcher.reset();
    done();
  });
  FunctionWatcher other_watcher([&](uint32_t) {
    other.Get();
    other_told.set_value();
  });
  RunOn(*loop, [&] {
    loop->Watch(pipe.out(), EPOLLIN, *watcher);
    loop->Watch(other.out(), EPOLLIN, other_watcher);
    pipe.Put('a');
    other.Put('b');  // both are ready in the same poll
  });
  gone.get_future().wait();
  other_told.get_future().wait();
  RunOn(*loop, [&] { loop->Unwatch(other.out()); });
}

// In which order they fire: timers_test.cc.
TEST(Loop, ATimerIsNotEarlyAndWhatItPostsIsRunBeforeTheLoopWaits) {
  LedLoop loop;
  std::promise<void> ran;
  Job posted([&] { ran.set_value(); });
  const Clock::time_point when = Clock::now() + std::chrono::milliseconds(5);
  FunctionTimer timer([&] {
    EXPECT_GE(Clock::now(), when);
    EXPECT_GE(loop->now(), when);
    loop->Post(posted);
  });
  RunOn(*loop, [&] { loop->timers().Set(timer, when); });
  EXPECT_EQ(ran.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
}

// The end of an iteration comes after everything that is ready, and after all that this posts.
TEST(Loop, EndsAnIterationOnceEverythingThatIsReadyHasRun) {
  const std::unique_ptr<Loop> loop = NewLoop();
  std::string order;
  int posts = 0;
  Job stop([&] { loop->Stop(); });
  Job end([&] {
    order += 'e';
    loop->Post(stop);
  });
  Job chain([&] {
    order += 'p';
    if (++posts < 100) loop->Post(chain);
  });
  Job begin([&] {
    loop->AtIterationEnd(end);
    order += 'b';
    loop->Post(chain);
  });
  LeadUntil(*loop, begin);
  EXPECT_EQ(order, "b" + std::string(100, 'p') + "e");
}

// So that responses to all of it share system calls.
TEST(Loop, LooksWhatElseHasComeBeforeItEndsAnIteration) {
  const std::unique_ptr<Loop> loop = NewLoop();
  Pipe pipe;
  std::string order;
  Job stop([&] { loop->Stop(); });
  Job end([&] {
    order += 'e';
    loop->Post(stop);
  });
  Job woken([&] { order += 'w'; });
  FunctionWatcher watcher([&](uint32_t) {
    order += pipe.Get();
    loop->Post(woken);
  });
  Job begin([&] {
    loop->Watch(pipe.out(), EPOLLIN, watcher);
    pipe.Put('r');
    loop->AtIterationEnd(end);
    order += 'b';
  });
  LeadUntil(*loop, begin);
  EXPECT_EQ(order, "brwe");
}

TEST(Loop, RunsWhatIsPostedNextBeforeEverythingElse) {
  const std::unique_ptr<Loop> loop = NewLoop();
  std::string order;
  Job stop([&] { loop->Stop(); });
  Job next([&] { order += 'n'; });
  Job alone([&] {
    order += 'a';
    loop->Post(stop);
  });
  Job first([&] {
    order += '1';
    loop->PostNext(next);
  });
  Job second([&] {
    order += '2';
    loop->PostNext(alone);
  });
  loop->Post(first);
  LeadUntil(*loop, second);
  EXPECT_EQ(order, "1n2a");
}

// A function that adds itself to the end again runs once per iteration. Sockets are polled in
// between, and the loop does not wait, even if none is readable.
TEST(Loop, WhatIsAtTheEndAgainWaitsForTheNextIteration) {
  for (const bool readable : {true, false}) {
    const std::unique_ptr<Loop> loop = NewLoop();
    Pipe pipe;
    if (readable) pipe.Put('a');
    int ends = 0;
    int looks = 0;
    FunctionWatcher watcher([&](uint32_t) { ++looks; });  // leaves it readable
    Job end([&] {
      EXPECT_EQ(looks > ends, readable) << "a look at the sockets since the end before this one";
      looks = ++ends;
      if (ends == 50) return loop->Stop();
      loop->AtIterationEnd(end);
    });
    Job begin([&] {
      loop->Watch(pipe.out(), EPOLLIN, watcher);
      loop->AtIterationEnd(end);
    });
    LeadUntil(*loop, begin);
    EXPECT_EQ(ends, 50);
  }
}

TEST(Loop, SaysWhenTheSystemHasNoDescriptors) {
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  rlimit none = before;
  none.rlim_cur = 0;
  setrlimit(RLIMIT_NOFILE, &none);
  const absl::StatusOr<std::unique_ptr<Loop>> loop = Loop::Create();
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(loop.status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace quantd::loop
