// The number of threads and loops, and what is short enough to compute where it was read. A pure
// function of the number of CPUs.
#ifndef QUANTD_SERVER_SCHEDULING_POLICY_H_
#define QUANTD_SERVER_SCHEDULING_POLICY_H_

#include <algorithm>
#include <chrono>

#include "server/loop/busy_poll.h"
#include "server/scheduling/compute_slots.h"

namespace quantd::scheduling {

struct Policy {
  int cores = 1;  // threads that may compute at the same time
  int loops = 1;  // each is led by a thread and has connections of its own
  int spare = 0;  // parked threads that take over from one that computes
  // A computation with an estimate up to this runs on the leading thread.
  std::chrono::nanoseconds short_work{};
  loop::BusyPoll::Limits busy_poll;

  int threads() const { return loops + spare + cores; }
};

// `cpus`: what affinity and the container's quota allow, rounded up, or --threads. `loops`:
// --event_loops; 0: decide here. `busy_poll_us`: what --busy_poll_us says.
//
// One loop per CPU: reading and writing are most of the work of small requests, and idle loops cost
// nothing. As many spare threads as cores, so that there is one whenever a core is free, and as
// many more as can stand (compute_slots.h). With one CPU a hand-over only helps other connections,
// and costs 13 % at 1 MiB, so only long computations use it. With several CPUs it costs a call its
// caches: Dequantize of 1 MiB, which takes about 250 us, is a tenth to a fifth faster without it.
constexpr Policy PolicyFor(int cpus, int loops, int busy_poll_us) {
  using std::chrono::microseconds;
  Policy policy;
  policy.cores = std::max(cpus, 1);
  policy.loops = loops > 0 ? loops : std::clamp(cpus, 1, 64);
  policy.spare = 2 * policy.cores + ComputeSlots::kMostStanding;
  policy.short_work = policy.cores == 1 ? microseconds(10'000) : microseconds(300);
  // With one CPU it would only keep the client from its work.
  policy.busy_poll = {microseconds(policy.cores == 1 ? 0 : busy_poll_us), policy.cores / 2};
  return policy;
}

}  // namespace quantd::scheduling

#endif  // QUANTD_SERVER_SCHEDULING_POLICY_H_
