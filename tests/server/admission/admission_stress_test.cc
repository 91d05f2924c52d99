// Permits under contention: none is lost, none is given twice, and the limits hold.
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <latch>
#include <memory>

#include "../loop/loop_testing.h"
#include "server/admission/admission.h"
#include "server/loop/loop.h"
#include "server/scheduling/thread_pool.h"

namespace quantd::admission {
namespace admission_stress_test {

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kSmall = Admission::kSmallBytes;

// Calls on two loops and their threads, which ask, cancel, shrink and compute at random.
class Crowd {
 public:
  explicit Crowd(uint64_t seed) : random_(seed) {}

  void Run() {
    std::deque<loop::Job> jobs;
    for (size_t i = 0; i < kCalls; ++i) {
      const bool large = loop::OneIn(random_, 3);
      const uint64_t bytes = 1 + loop::Below(random_, large ? kBudget : kSmall);
      const bool impatient = loop::OneIn(random_, 3);
      const uint64_t peer = loop::Below(random_, 5);
      jobs.emplace_back([=, this] { Call(i % 2, bytes, peer, impatient); });
      loops_[i % 2]->Post(jobs.back());
    }
    left_.wait();
    EXPECT_EQ(granted_ + cancelled_ + refused_, kCalls);
    EXPECT_GT(granted_.load(), 0);
    EXPECT_EQ(admission_.inflight_bytes(), 0u);
    EXPECT_EQ(admission_.inflight_requests(), 0);
    EXPECT_EQ(admission_.queued_requests(), 0);
  }

 private:
  static constexpr uint64_t kBudget = 8 * kMiB;
  static constexpr int kMost = 6;
  static constexpr int kCalls = 4'000;

  class Canceller final : public loop::Posted {
   public:
    Canceller(Admission& admission, Admission::Waiting& waiting)
        : admission_(admission), waiting_(waiting) {}
    bool posted = false;
    bool took_back = false;
    loop::Event over;

   private:
    void Run() override {
      took_back = admission_.Cancel(waiting_);
      over.Complete(true);
    }
    Admission& admission_;
    Admission::Waiting& waiting_;
  };

  loop::Detached Call(size_t index, uint64_t bytes, uint64_t peer, bool impatient) {
    loop::Loop& home = *loops_[index];
    loop::Lead lead(home);
    loop::Event admitted;
    Admission::Waiting waiting;
    Permit permit;
    Canceller canceller(admission_, waiting);
    const absl::StatusOr<bool> now =
        admission_.Request({bytes, peer, &home, &admitted}, waiting, permit);
    bool granted = now.value_or(false);
    if (now.ok() && !granted) {
      if (impatient) {
        canceller.posted = true;
        home.Post(canceller);
      }
      const bool later = co_await admitted;
      EXPECT_TRUE(home.leading());
      granted = later;
    }
    (granted ? granted_ : now.ok() ? cancelled_ : refused_).fetch_add(1);
    EXPECT_EQ(permit.bytes(), granted ? bytes : 0);
    if (granted) {
      EXPECT_LE(bytes_.fetch_add(bytes) + bytes, kBudget);
      EXPECT_LE(working_.fetch_add(1) + 1, kMost);
      thread_pool_.HandOver();
      bytes_.fetch_sub(bytes - bytes / 2);
      permit.Shrink(bytes / 2);
      working_.fetch_sub(1);
      permit.Computed();
    }
    co_await lead;
    if (granted) bytes_.fetch_sub(bytes / 2);
    permit.Release();
    if (canceller.posted) {
      const bool over = co_await canceller.over;
      EXPECT_TRUE(over);
      EXPECT_EQ(canceller.took_back, !granted);
    }
    left_.count_down();
  }

  loop::Random random_;
  Admission admission_{{kBudget, kMost, 500}};
  const std::unique_ptr<loop::Loop> loops_[2] = {loop::NewLoop(), loop::NewLoop()};
  std::atomic<uint64_t> bytes_{0};
  std::atomic<int> working_{0}, granted_{0}, cancelled_{0}, refused_{0};
  std::latch left_{kCalls};
  scheduling::ThreadPool thread_pool_{{loops_[0].get(), loops_[1].get()}, 3};
};

TEST(Admission, CompletesEveryRequestOnceAndStaysWithinItsLimitsUnderManyThreads) {
  Crowd(loop::TestSeed()).Run();
}

}  // namespace admission_stress_test
}  // namespace quantd::admission
