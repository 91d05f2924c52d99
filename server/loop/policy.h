// How many threads, how many loops, and what is short enough to be computed where it was read: a
// pure function of the CPUs.
#ifndef QUANTD_SERVER_LOOP_POLICY_H_
#define QUANTD_SERVER_LOOP_POLICY_H_

#include <algorithm>
#include <chrono>

namespace quantd::loop {

struct Policy {
  int cores = 1;  // threads that may compute at a time
  int loops = 1;  // each with a thread that leads it and connections of its own
  int spare = 0;  // parked threads, to take over from one that computes
  // A computation that is estimated to take no longer runs on the thread that leads.
  std::chrono::nanoseconds short_work{};

  int threads() const { return loops + spare + cores; }
};

// `cpus`: what affinity and the container's quota allow, rounded up; or what --threads says.
// `loops`: what --event_loops says; 0: decide here.
//
// One loop a CPU: reading and writing are most of the work of small requests, and idle loops cost
// nothing. As many spare threads as cores: then there is one whenever a core is free. With one CPU
// a hand-over gains nothing but the other connections' patience, and costs 13 % at 1 MiB: it waits
// for what takes long. With more of them it costs a call its caches: Dequantize of 1 MiB, of some
// 250 us, is a tenth to a fifth faster without.
constexpr Policy PolicyFor(int cpus, int loops) {
  using std::chrono::microseconds;
  Policy policy;
  policy.cores = std::max(cpus, 1);
  policy.loops = loops > 0 ? loops : std::clamp(cpus, 1, 64);
  policy.spare = policy.cores;
  policy.short_work = policy.cores == 1 ? microseconds(10'000) : microseconds(300);
  return policy;
}

}  // namespace quantd::loop

#endif  // QUANTD_SERVER_LOOP_POLICY_H_
