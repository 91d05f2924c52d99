// Turns of several sides under the same load, and what they add up to. A machine's speed comes and
// goes within seconds, by factors of two: turns are short, many and in the order a b, b a, a b, and
// ratios are formed between neighbours; of these the median counts.
#ifndef QUANTD_TESTS_BENCH_RPC_TURNS_H_
#define QUANTD_TESTS_BENCH_RPC_TURNS_H_

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "rpc_client.h"

namespace quantd::bench {

// One turn, or the medians of many.
struct Figures {
  double rate = 0;  // calls or items a second
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
  void Add(Load load);
  Figures Sum() const;
  const std::vector<Figures>& turns() const { return turns_; }

 private:
  std::vector<Figures> turns_;
  std::vector<double> latencies_;
};

// One turn of one side.
using Turn = std::function<Load()>;
// `rounds` turns of each side, in this order in one round and in the opposite in the next. One more
// turn of each comes first and does not count.
std::vector<Series> TakeTurns(const std::vector<Turn>& sides, int rounds);

// Ratios of neighbours: the median, and the quartiles for how far they spread.
struct Ratio {
  double median = 0, low = 0, high = 0;
};
struct Ratios {
  Ratio rate, p50, p99, cpu;
};
Ratios Compare(const Series& side, const Series& other);

// The value below which the part q of the values lies; 0 for none.
double Quantile(std::vector<double> values, double q);

nlohmann::json ToJson(const Figures& figures);
nlohmann::json ToJson(const Ratio& ratio);
nlohmann::json ToJson(const Ratios& ratios);

}  // namespace quantd::bench

#endif  // QUANTD_TESTS_BENCH_RPC_TURNS_H_
