// Permits: what the model does not ask: limits that are not set, peers and time.
#include "server/admission/admission.h"

#include <gtest/gtest.h>

#include <chrono>
#include <deque>

#include "admission_testing.h"

namespace quantd::admission {
namespace {

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

TEST(Admission, PeersTakeTurnsAndAPeersOwnKeepTheirOrder) {
  LedLoop loop;
  Admission admission({kMiB, 1, 1000});
  std::deque<Asker> greedy(8), modest(4);
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
}

// Two peers that take all they can leave a seventh; whoever has its share waits and is passed, also
// by a request that comes later.
TEST(Admission, APeerWithItsShareOfTheMemoryLetsOthersPass) {
  LedLoop loop;
  Admission admission({64 * kMiB, 1000, 1000});
  std::deque<Asker> greedy(120);
  int got = 0;
  for (size_t i = 0; i < greedy.size(); ++i) {
    got += greedy[i].Ask(admission, loop, kMiB, 1 + i % 2) ? 1 : 0;
  }
  EXPECT_NEAR(got, 56 * 6 / 7, 2);
  Asker modest, large;
  EXPECT_TRUE(modest.Ask(admission, loop, 6 * kMiB, 3));
  EXPECT_FALSE(large.Ask(admission, loop, 16 * kMiB, 4));
  for (size_t i = 0; i < 16; ++i) greedy[i].permit.Release();
  Deliver(loop);
  EXPECT_TRUE(large.got());
}

// A peer that is alone has all places among the requests in progress; beside another three
// quarters.
TEST(Admission, OneThatIsNotAloneLeavesOthersPlaces) {
  LedLoop loop;
  Admission admission({64 * kMiB, 8, 1000});
  std::deque<Asker> greedy(9);
  for (Asker& asker : greedy) EXPECT_EQ(asker.Ask(admission, loop, 1, 1), &asker != &greedy[8]);
  Asker modest, next;
  EXPECT_FALSE(modest.Ask(admission, loop, 1, 2)) << "it waits for one to end";
  greedy[0].permit.Computed();
  Deliver(loop);
  EXPECT_TRUE(modest.got());
  modest.permit.Release();
  EXPECT_TRUE(next.Ask(admission, loop, 1, 2));
  for (size_t i = 1; i < 3; ++i) greedy[i].permit.Computed();
  Deliver(loop);
  EXPECT_TRUE(greedy[8].got()) << "it has less than its share";
}

// A request that passes those of a peer with its share is its peer's turn, too.
TEST(Admission, WhoHasPassedOthersIsNotTheNextOne) {
  LedLoop loop;
  Admission admission({64 * kMiB, 8, 1000});
  Asker holder, passes, again, other;
  std::deque<Asker> greedy(7);
  EXPECT_TRUE(holder.Ask(admission, loop, 1, 2));
  for (Asker& asker : greedy) EXPECT_EQ(asker.Ask(admission, loop, 1, 1), &asker != &greedy[6]);
  EXPECT_TRUE(passes.Ask(admission, loop, 1, 3));
  EXPECT_FALSE(again.Ask(admission, loop, 1, 3));
  EXPECT_FALSE(other.Ask(admission, loop, 1, 4));
  holder.permit.Release();
  Deliver(loop);
  EXPECT_TRUE(other.got());
  EXPECT_FALSE(again.got());
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
