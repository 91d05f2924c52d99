// What every loop that times something needs.
#ifndef QUANTD_TESTS_BENCH_TIMING_H_
#define QUANTD_TESTS_BENCH_TIMING_H_

#include <algorithm>
#include <ctime>
#include <vector>

namespace quantd::bench {

// Seconds of a clock: CLOCK_MONOTONIC, or CLOCK_THREAD_CPUTIME_ID and its like.
inline double Now(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// REQUIRES: not empty.
inline double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace quantd::bench

#endif  // QUANTD_TESTS_BENCH_TIMING_H_
