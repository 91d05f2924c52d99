// Which calls compute: never more than there are cores, each once, in turn.
#include "server/scheduling/compute_slots.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <latch>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "../loop/loop_testing.h"
#include "server/loop/loop.h"
#include "server/scheduling/thread_pool.h"

namespace quantd::scheduling {
namespace {

// A call that asks for a core.
struct Asker {
  ComputeSlots::Waiting waiting;
  loop::Event granted;

  bool Take(ComputeSlots& cores, loop::Loop& loop, uint64_t peer = 1, uint64_t cost = 1) {
    return cores.Take(waiting, peer, cost, loop, granted);
  }
  bool got() const { return granted.ready() && granted.await_resume(); }
  bool cancelled() const { return granted.ready() && !granted.await_resume(); }
};

// Waits until the loop has run everything that was posted to it.
void Deliver(loop::LedLoop& loop) {
  loop::RunOn(*loop, [] {});
}

TEST(ComputeSlots, TakesARequestBackOnceAndNotWhenItHasItsCore) {
  loop::LedLoop loop;
  ComputeSlots cores(1);
  std::deque<Asker> askers(3);
  EXPECT_FALSE(cores.Cancel(askers[0].waiting)) << "never asked";
  EXPECT_TRUE(askers[0].Take(cores, *loop));
  EXPECT_FALSE(cores.Cancel(askers[0].waiting)) << "did not wait";
  EXPECT_FALSE(askers[1].Take(cores, *loop));
  EXPECT_FALSE(askers[2].Take(cores, *loop));
  EXPECT_TRUE(cores.Cancel(askers[1].waiting));
  EXPECT_FALSE(cores.Cancel(askers[1].waiting));
  EXPECT_EQ(cores.waiting(), 1);
  cores.Give(1);
  EXPECT_FALSE(cores.Cancel(askers[2].waiting)) << "has its core";
  Deliver(loop);
  EXPECT_TRUE(askers[1].cancelled());
  EXPECT_TRUE(askers[2].got());
  cores.Give(1);
  EXPECT_EQ(cores.busy(), 0);
}

TEST(ComputeSlots, IdleOnesAreThoseThatNobodyWaitsFor) {
  loop::LedLoop loop;
  ComputeSlots cores(4);
  std::deque<Asker> askers(3);
  EXPECT_TRUE(askers[0].Take(cores, *loop));
  EXPECT_EQ(cores.TakeIdle(2), 2);
  EXPECT_EQ(cores.TakeIdle(5), 1);
  EXPECT_EQ(cores.TakeIdle(5), 0);
  EXPECT_FALSE(askers[1].Take(cores, *loop));
  EXPECT_EQ(cores.TakeIdle(1), 0) << "somebody waits";
  cores.Give(4);
  EXPECT_EQ(cores.busy(), 1) << "the one that waited has one";
  EXPECT_EQ(cores.TakeIdle(0), 0);
  cores.Give(1);
  Deliver(loop);
}

// A computation that has a core, and has had its turn, on a thread of its own.
class Long {
 public:
  explicit Long(ComputeSlots& cores, uint64_t peer = 1) {
    turn.since = loop::Clock::now() - ComputeSlots::kTurn;
    thread_ = std::jthread([&cores, peer, this] {
      cores.LetOthers(turn, peer, kLong);
      continues = true;
    });
  }
  void Join() { thread_.join(); }

  static constexpr uint64_t kLong = 1'000'000'000;
  ComputeSlots::Turn turn;
  std::atomic<bool> continues{false};

 private:
  std::jthread thread_;
};

TEST(ComputeSlots, WhoHasHadItsTurnLetsOthersCompute) {
  loop::LedLoop loop;
  ComputeSlots cores(1);
  std::deque<Asker> askers(3);
  EXPECT_TRUE(askers[0].Take(cores, *loop));
  Long(cores).Join();  // nobody waits
  EXPECT_FALSE(askers[1].Take(cores, *loop, 2, Long::kLong));
  ComputeSlots::Turn young;
  young.since = loop::Clock::now() + std::chrono::hours(1);
  cores.LetOthers(young, 1, 1);  // has not had its turn
  EXPECT_EQ(cores.waiting(), 1);

  Long first(cores);
  while (cores.waiting() != 0) std::this_thread::yield();
  Deliver(loop);
  EXPECT_TRUE(askers[1].got());
  EXPECT_FALSE(first.continues);
  EXPECT_EQ(cores.busy(), 1);
  EXPECT_EQ(cores.TakeIdle(1), 0);
  // One more of its peer comes after it, unless it is much shorter.
  EXPECT_FALSE(askers[2].Take(cores, *loop, 1, Long::kLong));
  EXPECT_EQ(cores.waiting(), 1);
  const loop::Clock::time_point before = loop::Clock::now();
  cores.Give(1);
  first.Join();
  EXPECT_GE(first.turn.since.load(), before);
  EXPECT_GT(first.turn.stood.load(), loop::Clock::duration::zero());
  Deliver(loop);
  EXPECT_FALSE(askers[2].got());
  cores.Give(1);
  Deliver(loop);
  EXPECT_TRUE(askers[2].got());
  cores.Give(1);
}

// Its own peer's next one is not let in before it, unless that is much shorter.
TEST(ComputeSlots, OfOnePeerTheOneThatHasBegunGoesOn) {
  loop::LedLoop loop;
  ComputeSlots cores(1);
  std::deque<Asker> askers(3);
  EXPECT_TRUE(askers[0].Take(cores, *loop));
  EXPECT_FALSE(askers[1].Take(cores, *loop, 1, Long::kLong));
  Long first(cores);
  first.Join();
  EXPECT_FALSE(askers[1].got());
  EXPECT_FALSE(askers[2].Take(cores, *loop, 1, Long::kLong / 4));
  Long second(cores);
  while (cores.waiting() != 1) std::this_thread::yield();
  Deliver(loop);
  EXPECT_TRUE(askers[2].got());
  EXPECT_FALSE(second.continues);
  cores.Give(1);
  second.Join();
  EXPECT_TRUE(cores.Cancel(askers[1].waiting));
  cores.Give(1);
  Deliver(loop);
}

// Each has a thread. Beyond the most, only short ones are let in.
TEST(ComputeSlots, NotTooManyStand) {
  constexpr int kMost = ComputeSlots::kMostStanding;
  loop::LedLoop loop;
  ComputeSlots cores(1);
  std::deque<Asker> askers(kMost + 2);
  Asker holder, brief;
  EXPECT_TRUE(holder.Take(cores, *loop));
  for (int i = 0; i <= kMost; ++i) EXPECT_FALSE(askers[i].Take(cores, *loop, 2 + i, Long::kLong));
  EXPECT_FALSE(brief.Take(cores, *loop, 1000, 1));
  std::deque<Long> standing;
  const auto stands = [&] {
    const int64_t before = cores.waiting();
    standing.emplace_back(cores);
    while (cores.waiting() == before) std::this_thread::yield();
    Deliver(loop);
  };
  for (int i = 0; i < kMost; ++i) {
    stands();
    EXPECT_TRUE(askers[i].got());
  }
  Long(cores).Join();
  EXPECT_EQ(cores.waiting(), 2);
  EXPECT_TRUE(cores.Cancel(askers[kMost].waiting));
  stands();
  EXPECT_TRUE(brief.got());
  for (size_t i = 0; i < standing.size() + 1; ++i) {
    EXPECT_EQ(cores.busy(), 1);
    cores.Give(1);
  }
  for (Long& one : standing) one.Join();
  EXPECT_EQ(cores.busy(), 0);
}

TEST(ComputeSlots, AComputationThatBeganWithoutACoreJoins) {
  loop::LedLoop loop;
  ComputeSlots cores(1);
  ComputeSlots::Turn turn;
  cores.Join(turn, 1, 1);
  EXPECT_EQ(cores.busy(), 1);
  std::jthread second([&] { cores.Join(turn, 2, 1); });
  Asker asker;
  EXPECT_FALSE(asker.Take(cores, *loop, 3, 1));
  cores.Give(1);
  cores.Give(1);
  cores.Give(1);
  second.join();
  Deliver(loop);
  EXPECT_TRUE(asker.got());
}

// Loops, a thread pool, and calls that compute when they have a core.
class Office {
 public:
  Office(int cores_, int loop_count) : cores(cores_) {
    std::vector<loop::Loop*> all;
    for (int i = 0; i < loop_count; ++i) all.push_back(loops.emplace_back(loop::NewLoop()).get());
    thread_pool.emplace(all, 2 * cores_ + ComputeSlots::kMostStanding);
  }

  // A call: takes a core or waits for one, computes, and gives it back.
  template <typename Compute>
  loop::Detached Call(size_t index, uint64_t peer, Compute& compute, std::latch& left) {
    loop::Loop& loop = *loops[index];
    loop::Lead lead(loop);
    ComputeSlots::Waiting waiting;
    loop::Event granted;
    if (!cores.Take(waiting, peer, 1000, loop, granted)) {
      const bool has_core = co_await granted;
      EXPECT_TRUE(has_core);
    }
    if (loop.leading()) thread_pool->HandOver();
    compute();
    cores.Give(1);
    co_await lead;
    EXPECT_TRUE(loop.leading());
    left.count_down();
  }

  std::vector<std::unique_ptr<loop::Loop>> loops;
  ComputeSlots cores;
  std::optional<ThreadPool> thread_pool;
};

TEST(ComputeSlots, AThreadThatHasComputedTakesTheNextOneThatWaits) {
  Office office(1, 1);
  std::vector<std::thread::id> threads;
  std::latch left(5);
  const auto compute = [&] { threads.push_back(std::this_thread::get_id()); };
  loop::RunOn(*office.loops[0], [&] {
    // All of them have asked before the first one computes, so they queue on the loop's thread.
    EXPECT_EQ(office.cores.TakeIdle(1), 1);
    for (int i = 0; i < 5; ++i) office.Call(0, 1, compute, left);
    office.cores.Give(1);
  });
  left.wait();
  EXPECT_EQ(threads.size(), 5u);
  EXPECT_EQ(std::count(threads.begin(), threads.end(), threads[0]), 5)
      << "it was left to another thread, in whose cache nothing is";
}

// Calls of many peers on two loops: some are cancelled while they wait, some take more idle cores.
class Crowd {
 public:
  explicit Crowd(uint64_t seed) : random_(seed) {}

  void Run() {
    std::deque<loop::Job> jobs;
    for (size_t i = 0; i < kCalls; ++i) {
      // Drawn here, because the calls run on several threads.
      const int more = loop::OneIn(random_, 4) ? static_cast<int>(1 + loop::Below(random_, 3)) : 0;
      const bool impatient = loop::OneIn(random_, 3);
      const uint64_t peer = loop::Below(random_, 5);
      jobs.emplace_back([=, this] { Call(i % 2, peer, more, impatient); });
      office_.loops[i % 2]->Post(jobs.back());
    }
    left_.wait();
    EXPECT_EQ(granted_ + cancelled_, kCalls);
    EXPECT_EQ(office_.cores.busy(), 0);
    EXPECT_EQ(office_.cores.waiting(), 0);
    EXPECT_LE(most_.load(), kCores);
    EXPECT_GT(granted_.load(), 0);
  }

 private:
  static constexpr int kCores = 3;
  static constexpr int kCalls = 2'000;

  // Cancels a request soon after it was made, perhaps too late.
  class Canceller final : public loop::Posted {
   public:
    Canceller(ComputeSlots& cores, ComputeSlots::Waiting& waiting)
        : cores_(cores), waiting_(waiting) {}
    bool posted = false;
    bool took_back = false;
    loop::Event over;

   private:
    void Run() override {
      took_back = cores_.Cancel(waiting_);
      over.Complete(true);
    }
    ComputeSlots& cores_;
    ComputeSlots::Waiting& waiting_;
  };

  loop::Detached Call(size_t index, uint64_t peer, int more, bool impatient) {
    loop::Loop& loop = *office_.loops[index];
    loop::Lead lead(loop);
    ComputeSlots::Waiting waiting;
    loop::Event granted;
    Canceller canceller(office_.cores, waiting);
    bool has_core = office_.cores.Take(waiting, peer, 1000, loop, granted);
    if (!has_core) {
      if (impatient) {
        canceller.posted = true;
        loop.Post(canceller);
      }
      const bool was_granted = co_await granted;
      has_core = was_granted;
    }
    (has_core ? granted_ : cancelled_).fetch_add(1);
    if (has_core) {
      if (loop.leading()) office_.thread_pool->HandOver();
      int held = 1 + office_.cores.TakeIdle(more);
      const int now = computing_.fetch_add(held) + held;
      int known = most_.load();
      while (known < now && !most_.compare_exchange_weak(known, now)) {
      }
      std::this_thread::yield();
      computing_.fetch_sub(1);
      ComputeSlots::Turn turn;  // over since long ago
      office_.cores.LetOthers(turn, peer, 1000);
      computing_.fetch_sub(held - 1);
      office_.cores.Give(held);
    }
    co_await lead;
    if (canceller.posted) {
      const bool over = co_await canceller.over;
      EXPECT_TRUE(over);
      EXPECT_EQ(canceller.took_back, !has_core);
    }
    left_.count_down();
  }

  loop::Random random_;
  Office office_{kCores, 2};
  std::atomic<int> computing_{0}, most_{0}, granted_{0}, cancelled_{0};
  std::latch left_{kCalls};
};

TEST(ComputeSlots, NeverHasMoreAtWorkThanThereAreAndCompletesEveryRequestOnce) {
  Crowd(loop::TestSeed()).Run();
}

}  // namespace
}  // namespace quantd::scheduling
