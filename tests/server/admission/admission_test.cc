// Permits: bounds, order, and that none is lost under contention.
#include "server/admission/admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace quantd::admission {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Limits kLimits = {
    .memory_budget_bytes = 100, .max_inflight_requests = 3, .max_queued_requests = 2};

void NotCalled() { FAIL() << "granted was called for a permit that was given at once"; }

TEST(Admission, GrantsWhatFits) {
  Admission admission(kLimits);
  Permit a, b;
  EXPECT_TRUE(admission.Request(60, a, NotCalled).value());
  EXPECT_TRUE(admission.Request(40, b, NotCalled).value());
  EXPECT_EQ(admission.inflight_requests(), 2);
  EXPECT_EQ(admission.inflight_bytes(), 100u);
  a.Release();
  a.Release();  // does nothing
  EXPECT_EQ(admission.inflight_bytes(), 40u);
  b.Release();
  EXPECT_EQ(admission.inflight_requests(), 0);
  EXPECT_EQ(admission.inflight_bytes(), 0u);
}

TEST(Admission, RefusesForGoodWhatIsOverTheBudgetAlone) {
  Admission admission(kLimits);
  Permit permit;
  const absl::StatusOr<bool> granted = admission.Request(101, permit, NotCalled);
  EXPECT_EQ(granted.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(granted.status().message()), HasSubstr("--memory_budget_bytes"));
  EXPECT_THAT(std::string(granted.status().message()), HasSubstr("101"));
  EXPECT_EQ(admission.inflight_requests(), 0);
}

TEST(Admission, BoundsTheNumberOfRequests) {
  Admission admission(kLimits);
  Permit a, b, c, d;
  for (Permit* permit : {&a, &b, &c}) EXPECT_TRUE(admission.Request(0, *permit, NotCalled).value());
  bool granted = false;
  EXPECT_FALSE(admission.Request(0, d, [&] { granted = true; }).value());
  EXPECT_EQ(admission.queued_requests(), 1);
  EXPECT_FALSE(granted);
  b.Release();
  EXPECT_TRUE(granted);
  EXPECT_EQ(admission.queued_requests(), 0);
}

TEST(Admission, RefusesForNowWhenTheQueueIsFull) {
  Admission admission(kLimits);
  Permit a, b, c, d;
  EXPECT_TRUE(admission.Request(100, a, NotCalled).value());
  EXPECT_FALSE(admission.Request(1, b, [] {}).value());
  EXPECT_FALSE(admission.Request(1, c, [] {}).value());
  const absl::StatusOr<bool> granted = admission.Request(1, d, NotCalled);
  EXPECT_EQ(granted.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(granted.status().message()), HasSubstr("--max_queued_requests"));
}

TEST(Admission, FirstComeFirstServedAlsoWhenALaterOneWouldFit) {
  Admission admission(kLimits);
  std::vector<std::string> order;
  Permit a, big, small;
  EXPECT_TRUE(admission.Request(60, a, NotCalled).value());
  EXPECT_FALSE(admission.Request(90, big, [&] { order.push_back("big"); }).value());
  EXPECT_FALSE(admission.Request(10, small, [&] { order.push_back("small"); }).value());
  a.Release();
  EXPECT_THAT(order, ElementsAre("big", "small"));
  EXPECT_EQ(admission.inflight_bytes(), 100u);
}

TEST(Admission, APermitMoves) {
  Admission admission(kLimits);
  Permit a, c;
  ASSERT_TRUE(admission.Request(30, a, NotCalled).value());
  Permit b = std::move(a);
  a.Release();
  EXPECT_EQ(admission.inflight_bytes(), 30u);
  ASSERT_TRUE(admission.Request(50, c, NotCalled).value());
  c = std::move(b);  // gives the 50 back
  EXPECT_EQ(admission.inflight_bytes(), 30u);
  {
    const Permit last = std::move(c);
  }
  EXPECT_EQ(admission.inflight_bytes(), 0u);
}

TEST(Admission, RemembersThePeak) {
  Admission admission(kLimits);
  {
    Permit a, b;
    ASSERT_TRUE(admission.Request(30, a, NotCalled).value());
    ASSERT_TRUE(admission.Request(50, b, NotCalled).value());
  }
  EXPECT_EQ(admission.TakePeakBytes(), 80u);
  EXPECT_EQ(admission.TakePeakBytes(), 0u);
}

TEST(Admission, ManyThreadsNeverExceedTheLimitsAndAllAreServed) {
  const uint32_t seed = std::random_device{}();
  RecordProperty("seed", std::to_string(seed));
  SCOPED_TRACE("seed " + std::to_string(seed));
  Admission admission({1000, 4, 1000});
  std::atomic<int> served{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(seed + t);
      for (int i = 0; i < 2000; ++i) {
        std::mutex mutex;
        std::condition_variable changed;
        bool granted = false;
        Permit permit;
        const uint64_t bytes = random() % 600;
        const absl::StatusOr<bool> now = admission.Request(bytes, permit, [&] {
          const std::lock_guard lock(mutex);
          granted = true;
          changed.notify_one();
        });
        ASSERT_TRUE(now.ok());
        if (!*now) {
          std::unique_lock lock(mutex);
          changed.wait(lock, [&] { return granted; });
        }
        ASSERT_LE(admission.inflight_bytes(), 1000u);
        ASSERT_LE(admission.inflight_requests(), 4);
        ++served;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(served, 12000);
  EXPECT_EQ(admission.inflight_requests(), 0);
  EXPECT_EQ(admission.inflight_bytes(), 0u);
  EXPECT_EQ(admission.queued_requests(), 0);
}

}  // namespace
}  // namespace quantd::admission
