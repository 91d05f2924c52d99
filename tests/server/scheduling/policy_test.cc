// How many threads and loops: the table.
#include "server/scheduling/policy.h"

#include <gtest/gtest.h>

namespace quantd::scheduling {
namespace {

using std::chrono::microseconds;

struct Row {
  int cpus;  // a quota of 1.5 CPUs is 2 here: rounded up
  int queues;
  int cores, loops, spare;
  microseconds short_work;
  int busy_poll_us, most_awake;
};

constexpr Row kRows[] = {
    {1, 0, 1, 1, 18, microseconds(10'000), 0, 0},
    {2, 0, 2, 2, 20, microseconds(300), 20, 1},
    {4, 0, 4, 4, 24, microseconds(300), 20, 2},
    {8, 0, 8, 8, 32, microseconds(300), 20, 4},
    {16, 0, 16, 16, 48, microseconds(300), 20, 8},
    {64, 0, 64, 64, 144, microseconds(300), 20, 32},
    {256, 0, 256, 64, 528, microseconds(300), 20, 128},  // more loops gain nothing
    {3, 0, 3, 3, 22, microseconds(300), 20, 1},
    {1, 4, 1, 4, 18, microseconds(10'000), 0, 0},  // --event_loops=4
    {64, 1, 64, 1, 144, microseconds(300), 20, 32},
    {0, 0, 1, 1, 18, microseconds(10'000), 0, 0},  // the number is not known
    {-1, -1, 1, 1, 18, microseconds(10'000), 0, 0},
};

TEST(Policy, IsThisTable) {
  for (const Row& row : kRows) {
    SCOPED_TRACE(testing::Message() << row.cpus << " CPUs, --event_loops=" << row.queues);
    const Policy policy = PolicyFor(row.cpus, row.queues, 20);
    EXPECT_EQ(policy.cores, row.cores);
    EXPECT_EQ(policy.loops, row.loops);
    EXPECT_EQ(policy.spare, row.spare);
    EXPECT_EQ(policy.short_work, row.short_work);
    EXPECT_EQ(policy.busy_poll.moment, microseconds(row.busy_poll_us));
    EXPECT_EQ(policy.busy_poll.most_awake, row.most_awake);
    EXPECT_EQ(PolicyFor(row.cpus, row.queues, 0).busy_poll.moment, microseconds(0));
    // A core that is granted always finds a thread to take over the lead, whatever stands.
    EXPECT_GE(policy.spare, policy.cores + ComputeSlots::kMostStanding + policy.cores);
  }
}

}  // namespace
}  // namespace quantd::scheduling
