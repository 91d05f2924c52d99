// Turns of several sides under the same work, and their sums. A machine's speed changes within
// seconds, by factors of two. Therefore turns are short, many, and in the order a b, b a, a b;
// ratios are made of neighbours, and their median counts.
#ifndef QUANTD_TESTS_BENCH_TURNS_H_
#define QUANTD_TESTS_BENCH_TURNS_H_

#include <cstdint>
#include <ctime>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace quantd::bench {

// What a server's process has used.
struct Usage {
  double cpu_seconds = 0;
  uint64_t minor_faults = 0;
  uint64_t resident_bytes = 0;

  // The use since `before`; resident_bytes stays.
  Usage Since(const Usage& before) const;
};

// What was measured in a turn.
struct Load {
  uint64_t calls = 0;  // or items, or passes over a tensor
  uint64_t total = 0;  // including those that do not count
  uint64_t errors = 0;
  double seconds = 0;
  std::vector<double> latencies;  // seconds; of calls only
  Usage used;                     // by the server; resident_bytes: at the end
};

// One turn, or the medians of many.
struct Figures {
  double rate = 0;  // calls, items or passes a second
  double p50 = 0;   // seconds
  double p99 = 0;   // seconds; of many turns: of all their calls together
  double cpu = 0;   // seconds of the server a call
  // For many turns, these are not medians.
  double faults = 0;          // page faults of the server a call
  double resident_bytes = 0;  // at the end
  uint64_t errors = 0;
};

// The turns of one side.
class Series {
 public:
  void Add(const Load& load);
  Figures Sum() const;
  const std::vector<Figures>& turns() const { return turns_; }

 private:
  std::vector<Figures> turns_;
  std::vector<double> latencies_;
};

// One turn of one side.
using Turn = std::function<Load()>;
struct Side {
  std::string name;
  Turn turn;
};

// `rounds` turns of each side, in this order in one round and in the opposite order in the next.
// One more turn of each comes first and does not count.
std::vector<Series> TakeTurns(const std::vector<Side>& sides, int rounds);

// A turn of work in this process, for `seconds`. Work on this thread alone is timed by its CPU
// time, so that other programs affect it less. Work on several threads is timed by the wall clock,
// and the turn ends when all threads sleep: after work, the threads of a pool look for more for a
// while (those of ONNX Runtime for tens of milliseconds).
Load Repeat(const std::function<absl::Status()>& run, double seconds, int threads);

// Seconds of a clock: CLOCK_MONOTONIC, CLOCK_THREAD_CPUTIME_ID or similar.
double Now(clockid_t clock);

// Ratios of neighbours: the median, and the quartiles to show how far they spread.
struct Ratio {
  double median = 0, low = 0, high = 0;
};
struct Ratios {
  Ratio rate, p50, p99, cpu;
};
Ratios Compare(const Series& side, const Series& other);

nlohmann::json ToJson(const Figures& figures);
nlohmann::json ToJson(const Ratios& ratios);

}  // namespace quantd::bench

#endif  // QUANTD_TESTS_BENCH_TURNS_H_
