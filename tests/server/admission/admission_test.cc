// Permits: bounds, order and lanes.
#include "server/admission/admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <future>
#include <string>
#include <utility>

#include "admission_testing.h"

namespace quantd::admission {
namespace {

using ::testing::HasSubstr;

TEST(Admission, GrantsWhatFits) {
  LedLoop loop;
  Admission admission({100, 3, 2});
  Asker a, b;
  EXPECT_TRUE(a.Ask(admission, loop, 60));
  EXPECT_TRUE(b.Ask(admission, loop, 40));
  EXPECT_EQ(a.permit.bytes(), 60u);
  EXPECT_EQ(admission.inflight_requests(), 2);
  EXPECT_EQ(admission.inflight_bytes(), 100u);
  a.permit.Release();
  a.permit.Release();  // does nothing
  EXPECT_EQ(admission.inflight_bytes(), 40u);
  EXPECT_EQ(a.permit.bytes(), 0u);
  {
    const Permit dies = std::move(b.permit);
  }
  EXPECT_EQ(admission.inflight_requests(), 0);
  EXPECT_EQ(admission.inflight_bytes(), 0u);
}

TEST(Admission, SaysWhetherThereIsPlenty) {
  LedLoop loop;
  Admission admission(
      {.memory_budget_bytes = 100, .max_inflight_requests = 6, .max_queued_requests = 9});
  EXPECT_TRUE(admission.has_plenty());
  Asker half, more;
  EXPECT_TRUE(half.Ask(admission, loop, 50));
  EXPECT_TRUE(admission.has_plenty());
  EXPECT_TRUE(more.Ask(admission, loop, 1));
  EXPECT_FALSE(admission.has_plenty());
  more.permit.Release();
  {
    Asker waits;
    EXPECT_FALSE(waits.Ask(admission, loop, 60));
    EXPECT_FALSE(admission.has_plenty());
  }
  EXPECT_TRUE(admission.has_plenty());
  std::deque<Asker> many(4);
  for (Asker& one : many) EXPECT_TRUE(one.Ask(admission, loop, 0));
  EXPECT_FALSE(admission.has_plenty()) << "of requests";
}

TEST(Admission, LimitsThatAreNotSetLetNothingIn) {
  LedLoop loop;
  Admission no_memory(Limits{});
  Admission no_requests({.memory_budget_bytes = 100});
  Admission no_queue({.memory_budget_bytes = 100, .max_inflight_requests = 1});
  Asker asker, other;
  EXPECT_TRUE(absl::IsResourceExhausted(other.Refusal(no_memory, loop, 1)));
  EXPECT_TRUE(absl::IsUnavailable(other.Refusal(no_requests, loop, 1)));
  EXPECT_TRUE(asker.Ask(no_queue, loop, 1));
  EXPECT_TRUE(absl::IsUnavailable(other.Refusal(no_queue, loop, 1)));
}

TEST(Admission, RefusesForGoodWhatIsOverTheBudgetAlone) {
  LedLoop loop;
  Admission admission({100, 3, 2});
  Asker asker;
  const absl::Status refusal = asker.Refusal(admission, loop, 101);
  EXPECT_EQ(refusal.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refusal.message()), HasSubstr("--memory_budget_bytes"));
  EXPECT_THAT(std::string(refusal.message()), HasSubstr("101"));
  EXPECT_EQ(admission.inflight_requests(), 0);
  EXPECT_EQ(admission.queued_requests(), 0);
}

TEST(Admission, RefusesForNowWhatTheQueueHasNoPlaceFor) {
  LedLoop loop;
  Admission admission({4 * kMiB, 8, 2});
  Asker holder, small, large, refused;
  EXPECT_TRUE(holder.Ask(admission, loop, 4 * kMiB));
  EXPECT_FALSE(admission.anyone_waits());
  EXPECT_FALSE(small.Ask(admission, loop, 1));
  EXPECT_FALSE(large.Ask(admission, loop, kMiB));
  EXPECT_TRUE(admission.anyone_waits());
  const absl::Status refusal = refused.Refusal(admission, loop, 1);
  EXPECT_EQ(refusal.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(refusal.message()), HasSubstr("--max_queued_requests"));
  EXPECT_EQ(admission.queued_requests(), 2);
  holder.permit.Release();
  Deliver(loop);
  EXPECT_TRUE(small.got());
  EXPECT_TRUE(large.got());
  EXPECT_EQ(refused.permit.bytes(), 0u);
}

TEST(Admission, BoundsTheNumberOfRequestsUntilTheyAreComputed) {
  LedLoop loop;
  Admission admission({100, 2, 5});
  Asker a, b, c, d;
  EXPECT_TRUE(a.Ask(admission, loop, 10));
  EXPECT_TRUE(b.Ask(admission, loop, 10));
  EXPECT_FALSE(c.Ask(admission, loop, 10));
  EXPECT_FALSE(d.Ask(admission, loop, 10));
  a.permit.Computed();
  a.permit.Computed();  // does nothing
  EXPECT_EQ(admission.inflight_requests(), 2) << "the next one is worked on";
  EXPECT_EQ(admission.inflight_bytes(), 30u) << "its memory is still in use";
  EXPECT_EQ(admission.queued_requests(), 1);
  a.permit.Release();
  EXPECT_EQ(admission.inflight_requests(), 2) << "it was not counted any more";
  EXPECT_EQ(admission.inflight_bytes(), 20u);
  b.permit.Release();
  Deliver(loop);
  EXPECT_TRUE(c.got());
  EXPECT_TRUE(d.got());
}

TEST(Admission, TakesBackPartOfAPermit) {
  LedLoop loop;
  Admission admission({100, 5, 5});
  Asker holder, other;
  EXPECT_TRUE(holder.Ask(admission, loop, 90));
  EXPECT_FALSE(other.Ask(admission, loop, 60));
  holder.permit.Shrink(95);  // more than it has
  holder.permit.Shrink(50);
  EXPECT_EQ(admission.inflight_bytes(), 50u);
  holder.permit.Shrink(40);
  EXPECT_EQ(holder.permit.bytes(), 40u);
  EXPECT_EQ(admission.inflight_bytes(), 100u);
  EXPECT_EQ(admission.inflight_requests(), 2);
  Deliver(loop);
  EXPECT_TRUE(other.got());
  EXPECT_EQ(other.permit.bytes(), 60u);
  holder.permit.Shrink(0);
  EXPECT_EQ(admission.inflight_requests(), 2) << "it is still worked on";
}

TEST(Admission, APermitMovesWithItsBytesAndGivesUpWhatItHad) {
  LedLoop loop;
  Admission admission({100, 5, 5});
  Asker a, b;
  EXPECT_TRUE(a.Ask(admission, loop, 60));
  EXPECT_TRUE(b.Ask(admission, loop, 30));
  a.permit = std::move(b.permit);
  EXPECT_EQ(admission.inflight_bytes(), 30u);
  EXPECT_EQ(a.permit.bytes(), 30u);
  EXPECT_EQ(b.permit.bytes(), 0u);
  b.permit.Computed();  // does nothing
  EXPECT_EQ(admission.inflight_requests(), 1);
  Permit& same = a.permit;
  a.permit = std::move(same);
  EXPECT_EQ(admission.inflight_bytes(), 30u);
  a.permit.Computed();
  EXPECT_EQ(admission.inflight_requests(), 0);
}

TEST(Admission, TellsOnTheLoopOfTheRequest) {
  LedLoop loop;
  Admission admission({100, 5, 5});
  Asker holder;
  EXPECT_TRUE(holder.Ask(admission, loop, 100));
  std::promise<bool> told;
  struct Waiter {
    static loop::Detached Wait(loop::Event& granted, loop::Loop& where,
                               std::promise<bool>& result) {
      const bool ok = co_await granted;
      result.set_value(ok && where.leading());
    }
  };
  loop::Event granted;
  Admission::Waiting waiting;
  Permit permit;
  AdmissionRequest request;
  request.bytes = 1;
  request.loop = loop.get();
  request.granted = &granted;
  EXPECT_FALSE(admission.Request(request, waiting, permit).value());
  Waiter::Wait(granted, *loop, told);
  holder.permit.Release();  // on this thread
  EXPECT_TRUE(told.get_future().get());
}

TEST(Admission, TakesARequestOutOfTheQueueOnce) {
  LedLoop loop;
  Admission admission({8 * kMiB, 5, 5});
  Asker holder, big, little;
  EXPECT_TRUE(holder.Ask(admission, loop, 4 * kMiB));
  EXPECT_FALSE(holder.Cancel(admission)) << "it did not wait";
  EXPECT_FALSE(big.Ask(admission, loop, 6 * kMiB));
  EXPECT_FALSE(little.Ask(admission, loop, 2 * kMiB)) << "behind the one that came first";
  EXPECT_TRUE(big.Cancel(admission));
  EXPECT_FALSE(big.Cancel(admission));
  Deliver(loop);
  EXPECT_TRUE(big.cancelled());
  EXPECT_EQ(big.permit.bytes(), 0u);
  EXPECT_TRUE(little.got()) << "what is left is enough for it";
  EXPECT_FALSE(little.Cancel(admission)) << "it has its permit";
  EXPECT_EQ(admission.inflight_bytes(), 6 * kMiB);
}

TEST(Admission, SmallOnesNeverWaitBehindLargeOnes) {
  LedLoop loop;
  Admission admission({8 * kMiB, 100, 100});
  // Large requests may have 7 MiB of these 8.
  std::deque<Asker> large(10), small(4);
  for (size_t i = 0; i < 7; ++i) EXPECT_TRUE(large[i].Ask(admission, loop, kMiB)) << i;
  for (size_t i = 7; i < 10; ++i) EXPECT_FALSE(large[i].Ask(admission, loop, kMiB)) << i;
  for (Asker& asker : small) EXPECT_TRUE(asker.Ask(admission, loop, kSmall));
  EXPECT_EQ(admission.inflight_bytes(), 8 * kMiB);
  EXPECT_EQ(admission.queued_requests(), 3);
  // The memory that a small request returns is for small ones.
  small[0].permit.Release();
  Deliver(loop);
  EXPECT_FALSE(large[7].got());
  large[0].permit.Release();
  Deliver(loop);
  EXPECT_TRUE(large[7].got());
}

TEST(Admission, LargeOnesLeaveAQuarterOfTheNumberToSmallOnes) {
  LedLoop loop;
  Admission admission({1000 * kMiB, 8, 100});
  std::deque<Asker> large(8), small(3);
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(large[i].Ask(admission, loop, kMiB), i < 6) << i;
  EXPECT_TRUE(small[0].Ask(admission, loop, 1));
  EXPECT_TRUE(small[1].Ask(admission, loop, 1));
  EXPECT_FALSE(small[2].Ask(admission, loop, 1));
  EXPECT_EQ(admission.inflight_requests(), 8);
}

TEST(Admission, OneThatIsLargerThanTheLargeOnesPartIsLetInAlone) {
  LedLoop loop;
  Admission admission({8 * kMiB, 100, 100});
  Asker whole, next, small;
  EXPECT_TRUE(whole.Ask(admission, loop, 8 * kMiB));
  EXPECT_FALSE(next.Ask(admission, loop, 8 * kMiB));
  EXPECT_FALSE(small.Ask(admission, loop, 1));
  whole.permit.Shrink(7 * kMiB);
  Deliver(loop);
  EXPECT_TRUE(small.got()) << "the next one waits for a large one, not for small ones";
  whole.permit.Release();
  small.permit.Release();
  Deliver(loop);
  EXPECT_TRUE(next.got());
}

// A response that is not sent yet: nobody computes, but its bytes still take memory.
TEST(Admission, OneThatIsLargerThanTheLargeOnesPartWaitsForTheirResponses) {
  LedLoop loop;
  Admission admission({8 * kMiB, 100, 100});
  Asker answered, whole;
  EXPECT_TRUE(answered.Ask(admission, loop, kMiB));
  answered.permit.Computed();
  EXPECT_FALSE(whole.Ask(admission, loop, 6 * kMiB + kMiB / 2));
  answered.permit.Release();
  Deliver(loop);
  EXPECT_TRUE(whole.got());
}

TEST(Admission, OneAsLargeAsTheLargeOnesPartKeepsNobodyWaiting) {
  LedLoop loop;
  Admission admission({8 * kMiB, 100, 100});
  std::deque<Asker> early(5);
  Asker as_large, late;
  for (Asker& asker : early) EXPECT_TRUE(asker.Ask(admission, loop, kSmall));
  EXPECT_FALSE(as_large.Ask(admission, loop, 7 * kMiB));
  EXPECT_TRUE(late.Ask(admission, loop, kSmall));
}

// It waits, not they: what it waits for may be a response that nobody reads.
TEST(Admission, SmallOnesNeverWaitForTheLargest) {
  LedLoop loop;
  Admission admission({8 * kMiB, 100, 100});
  Asker early, largest, late;
  EXPECT_TRUE(early.Ask(admission, loop, kSmall));
  EXPECT_FALSE(largest.Ask(admission, loop, 7 * kMiB + 900 * 1024));
  EXPECT_TRUE(late.Ask(admission, loop, kSmall));
  early.permit.Release();
  Deliver(loop);
  EXPECT_FALSE(largest.got());
  late.permit.Release();
  Deliver(loop);
  EXPECT_TRUE(largest.got());
}

TEST(Admission, PeersTakeTurnsAndAPeersOwnKeepTheirOrder) {
  LedLoop loop;
  Admission admission({kMiB, 1, 1000});
  std::deque<Asker> greedy(64), modest(4);
  Asker holder;
  EXPECT_TRUE(holder.Ask(admission, loop, 1, 3));
  for (Asker& asker : greedy) EXPECT_FALSE(asker.Ask(admission, loop, 1000, 1));
  for (Asker& asker : modest) EXPECT_FALSE(asker.Ask(admission, loop, 1000, 2));
  holder.permit.Release();
  size_t of_greedy = 0, of_modest = 0;
  for (int i = 0; i < 8; ++i) {
    Deliver(loop);
    const bool is_greedy = greedy[of_greedy].got();
    const bool is_modest = of_modest < modest.size() && modest[of_modest].got();
    ASSERT_NE(is_greedy, is_modest);
    (is_greedy ? greedy[of_greedy++] : modest[of_modest++]).permit.Release();
  }
  EXPECT_EQ(of_greedy, 4u);
  EXPECT_EQ(of_modest, 4u);
  Deliver(loop);
  while (of_greedy < greedy.size()) {
    ASSERT_TRUE(greedy[of_greedy].got());
    greedy[of_greedy++].permit.Release();
    Deliver(loop);
  }
  EXPECT_EQ(admission.inflight_bytes(), 0u);
}

// Counted from the first request that waited, whatever has come since, until none waits.
TEST(Admission, SaysForHowLongSomebodyHasBeenWaiting) {
  using loop::Clock;
  const auto pass = [] {  // a while that differs from none
    const Clock::time_point end = Clock::now() + std::chrono::milliseconds(20);
    while (Clock::now() < end) continue;
  };
  LedLoop loop;
  Admission admission({8 * kMiB, 100, 100});
  Asker holder;
  EXPECT_TRUE(holder.Ask(admission, loop, 8 * kMiB));
  pass();
  EXPECT_EQ(admission.crowded_for(), Clock::duration::zero());
  for (const uint64_t bytes : {kSmall, 2 * kMiB}) {
    Asker first, second;
    const Clock::time_point before = Clock::now();
    EXPECT_FALSE(first.Ask(admission, loop, bytes));
    pass();
    EXPECT_FALSE(second.Ask(admission, loop, kMiB));
    EXPECT_GE(admission.crowded_for(), std::chrono::milliseconds(20));
    const Clock::duration crowded = admission.crowded_for();
    EXPECT_LE(crowded, Clock::now() - before);
    EXPECT_TRUE(first.Cancel(admission));
    EXPECT_GE(admission.crowded_for(), std::chrono::milliseconds(20));
    EXPECT_TRUE(second.Cancel(admission));
    EXPECT_EQ(admission.crowded_for(), Clock::duration::zero());
  }
}

}  // namespace
}  // namespace quantd::admission
