// Turns of several sides under the same work, and what they add up to. A machine's speed comes and
// goes within seconds, by factors of two: turns are short, many and in the order a b, b a, a b, and
// ratios are formed between neighbours; of these the median counts.
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

// Of a server's process.
struct Usage {
  double cpu_seconds = 0;
  uint64_t minor_faults = 0;
  uint64_t resident_bytes = 0;

  // What was used since then; resident_bytes stays.
  Usage Since(const Usage& before) const;
};

// What a turn saw.
struct Load {
  uint64_t calls = 0;  // or items, or passes over a tensor
  uint64_t total = 0;  // those that do not count, too
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
  // Of many turns these are not medians.
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

// `rounds` turns of each side, in this order in one round and in the opposite in the next. One more
// turn of each comes first and does not count.
std::vector<Series> TakeTurns(const std::vector<Side>& sides, int rounds);

// A turn of work in this process, for so many seconds. What runs on this thread alone is timed by
// the time that it was running, so that other programs cost less of a figure; what runs in several
// by the clock on the wall, and it begins when all threads sleep: those of a pool that has had work
// go on looking for more, ONNX Runtime's for tens of milliseconds.
Load Repeat(const std::function<absl::Status()>& run, double seconds, int threads);

// Seconds of a clock: CLOCK_MONOTONIC, or CLOCK_THREAD_CPUTIME_ID and its like.
double Now(clockid_t clock);

// Ratios of neighbours: the median, and the quartiles for how far they spread.
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
