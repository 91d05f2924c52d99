// What tests of loops need: a seed that can be repeated, a loop with its own thread, and a
// coroutine.
#ifndef QUANTD_TESTS_SERVER_LOOP_LOOP_TESTING_H_
#define QUANTD_TESTS_SERVER_LOOP_LOOP_TESTING_H_

#include <gtest/gtest.h>

#include <coroutine>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <latch>
#include <memory>
#include <random>
#include <thread>
#include <utility>

#include "server/loop/loop.h"

namespace quantd::loop {

using Random = std::mt19937_64;

// A number in [0, end).
inline uint64_t Below(Random& random, uint64_t end) { return random() % end; }
inline bool OneIn(Random& random, uint64_t n) { return Below(random, n) == 0; }

// QUANTD_TEST_SEED, or a random one; printed, so that a failure can be repeated.
inline uint64_t TestSeed() {
  const char* text = std::getenv("QUANTD_TEST_SEED");
  const uint64_t seed = text == nullptr ? std::random_device()() : std::strtoull(text, nullptr, 0);
  std::printf("QUANTD_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

// A coroutine that nobody waits for. Its frame is freed when it ends.
struct Detached {
  struct promise_type {
    Detached get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::abort(); }
  };
};

// A function that can be posted again as soon as it runs, but not twice at a time.
class Job final : public Posted {
 public:
  explicit Job(std::function<void()> function) : function_(std::move(function)) {}

 private:
  void Run() override { function_(); }
  const std::function<void()> function_;
};

// Runs `function` on the thread that leads, and waits for it.
inline void RunOn(Loop& loop, std::function<void()> function) {
  if (loop.leading()) return function();
  std::latch done(1);
  Job job([&] {
    function();
    done.count_down();
  });
  loop.Post(job);
  done.wait();
}

inline std::unique_ptr<Loop> NewLoop() {
  absl::StatusOr<std::unique_ptr<Loop>> loop = Loop::Create();
  if (!loop.ok()) std::abort();
  return *std::move(loop);
}

// A loop that a thread of its own leads as long as this object lives.
class LedLoop {
 public:
  LedLoop() : loop_(NewLoop()), thread_([this] { loop_->Lead(); }) {}
  ~LedLoop() {
    loop_->Stop();
    thread_.join();
  }

  Loop& operator*() { return *loop_; }
  Loop* operator->() { return loop_.get(); }
  Loop* get() { return loop_.get(); }

 private:
  const std::unique_ptr<Loop> loop_;
  std::thread thread_;
};

}  // namespace quantd::loop

#endif  // QUANTD_TESTS_SERVER_LOOP_LOOP_TESTING_H_
