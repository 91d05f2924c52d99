// The small parts: the phases of a call's time, and the kernels' threads.
#include <gtest/gtest.h>

#include <chrono>

#include "absl/time/time.h"
#include "server/rpc/backend.h"
#include "server/rpc/timeline.h"
#include "server/transport_numbers.h"

namespace quantd::rpc {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

// Nothing is rounded to seconds, and small times do not become 0.
TEST(TransportLimits, TimesAreExact) {
  server::Options options;
  options.keepalive = absl::Milliseconds(1'500);
  options.max_connection_age = absl::Milliseconds(2'750);
  options.max_connection_age_grace = absl::Microseconds(1);
  options.stall_timeout = absl::Microseconds(1);
  options.queue_timeout = absl::ZeroDuration();
  const transport::Limits limits = server::TransportLimits(options);
  EXPECT_EQ(limits.keepalive, std::chrono::milliseconds(1'500));
  EXPECT_EQ(limits.keepalive / 3, std::chrono::milliseconds(500));
  EXPECT_EQ(limits.max_connection_age, std::chrono::milliseconds(2'750));
  EXPECT_EQ(limits.max_connection_age_grace, std::chrono::milliseconds(1));
  EXPECT_EQ(limits.stall, std::chrono::milliseconds(1));
  EXPECT_EQ(limits.queue_timeout, std::chrono::milliseconds(0));
}

TEST(Timeline, SaysThePhasesThatWereReachedAndTheirSums) {
  Timeline timeline;
  EXPECT_EQ(timeline.Text(), "");
  timeline.Add(Phase::kKernel, microseconds(40));
  EXPECT_EQ(timeline.Text(), "kernel=40");
  timeline.Add(Phase::kEncode, microseconds(0));
  timeline.Add(Phase::kDecode, microseconds(12));
  EXPECT_EQ(timeline.Text(), "decode=12,kernel=40,encode=0");
  timeline.Add(Phase::kQueue, nanoseconds(1'500));
  timeline.Add(Phase::kQueue, nanoseconds(1'500));
  timeline.Add(Phase::kQueue, -microseconds(100));  // nothing takes from a sum
  EXPECT_EQ(timeline.Text(), "decode=12,queue=3,kernel=40,encode=0");
}

TEST(Executors, UseMostOfTheCoresAndNoMore) {
  for (int all = 1; all <= 9; ++all) {
    const Executors executors(all);
    for (int cores = 1; cores <= all; ++cores) {
      const int threads = executors.of(cores).threads();
      EXPECT_LE(threads, cores);
      EXPECT_GT(2 * threads, cores);
    }
    EXPECT_EQ(executors.of(all).threads(), all);
  }
}

}  // namespace
}  // namespace quantd::rpc
