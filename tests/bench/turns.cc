#include "turns.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

namespace quantd::bench {
namespace {

// The value below which a share q of the values lies; 0 if there are none.
double Quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  const auto nth = values.begin() + static_cast<ptrdiff_t>(q * (values.size() - 1) + 0.5);
  std::nth_element(values.begin(), nth, values.end());
  return *nth;
}

std::vector<double> Each(const std::vector<Figures>& turns, double Figures::* field) {
  std::vector<double> values;
  for (const Figures& turn : turns) values.push_back(turn.*field);
  return values;
}

double Median(const std::vector<Figures>& turns, double Figures::* field) {
  return Quantile(Each(turns, field), 0.5);
}

Ratio CompareOne(const Series& side, const Series& other, double Figures::* field) {
  const std::vector<double> above = Each(side.turns(), field), below = Each(other.turns(), field);
  std::vector<double> ratios;
  for (size_t i = 0; i < std::min(above.size(), below.size()); ++i) {
    if (below[i] > 0) ratios.push_back(above[i] / below[i]);
  }
  return {Quantile(ratios, 0.5), Quantile(ratios, 0.25), Quantile(ratios, 0.75)};
}

// Returns when no thread of this process is running.
void FallAsleep() {
  const auto slice = std::chrono::milliseconds(2);
  const double still = 0.05 * std::chrono::duration<double>(slice).count();
  for (int i = 0; i < 500; ++i) {
    const double before = Now(CLOCK_PROCESS_CPUTIME_ID);
    std::this_thread::sleep_for(slice);
    if (Now(CLOCK_PROCESS_CPUTIME_ID) - before < still) return;
  }
}

nlohmann::json ToJson(const Ratio& ratio) {
  return {{"median", ratio.median}, {"quartiles", {ratio.low, ratio.high}}};
}

}  // namespace

double Now(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

Usage Usage::Since(const Usage& before) const {
  return {cpu_seconds - before.cpu_seconds, minor_faults - before.minor_faults, resident_bytes};
}

void Series::Add(const Load& load) {
  const double calls = std::max<double>(1, static_cast<double>(load.calls));
  Figures turn;
  if (load.seconds > 0) turn.rate = static_cast<double>(load.calls) / load.seconds;
  turn.p50 = Quantile(load.latencies, 0.5);
  turn.p99 = Quantile(load.latencies, 0.99);
  turn.cpu = load.used.cpu_seconds / calls;
  turn.faults = static_cast<double>(load.used.minor_faults) / calls;
  turn.resident_bytes = static_cast<double>(load.used.resident_bytes);
  turn.errors = load.errors;
  turns_.push_back(turn);
  latencies_.insert(latencies_.end(), load.latencies.begin(), load.latencies.end());
}

Figures Series::Sum() const {
  Figures sum;
  if (turns_.empty()) return sum;
  sum.rate = Median(turns_, &Figures::rate);
  sum.p50 = Median(turns_, &Figures::p50);
  sum.p99 = Quantile(latencies_, 0.99);
  sum.cpu = Median(turns_, &Figures::cpu);
  for (const Figures& turn : turns_) {
    sum.faults += turn.faults / static_cast<double>(turns_.size());
    sum.errors += turn.errors;
  }
  sum.resident_bytes = turns_.back().resident_bytes;
  return sum;
}

std::vector<Series> TakeTurns(const std::vector<Side>& sides, int rounds) {
  std::vector<Series> all(sides.size());
  for (const Side& side : sides) side.turn();
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < sides.size(); ++i) {
      const size_t side = round % 2 == 0 ? i : sides.size() - 1 - i;
      all[side].Add(sides[side].turn());
    }
  }
  return all;
}

Load Repeat(const std::function<absl::Status()>& run, double seconds, int threads) {
  const clockid_t clock = threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
  Load load;
  absl::Status status;
  // Repeats until the caches are filled and the pool's threads are awake, each on its own core: the
  // kernel wakes them on the caller's core and moves them tens of milliseconds later, if another
  // process was busy on theirs.
  const double lead = threads > 1 ? std::min(0.06, 8 * seconds) : seconds / 10;
  const double start = Now(CLOCK_MONOTONIC);
  do {
    status.Update(run());
    ++load.total;
  } while (Now(CLOCK_MONOTONIC) - start < lead);
  // Short work reads the clock only now and then.
  const double once = (Now(CLOCK_MONOTONIC) - start) / static_cast<double>(load.total);
  const int batch = std::clamp(static_cast<int>(20e-6 / once), 1, 64);
  const double begin = Now(clock);
  do {
    for (int i = 0; i < batch; ++i) status.Update(run());
    load.calls += static_cast<uint64_t>(batch);
    load.seconds = Now(clock) - begin;
  } while (load.seconds < seconds);
  if (threads > 1) FallAsleep();
  load.total += load.calls;
  load.errors = status.ok() ? 0 : 1;
  return load;
}

Ratios Compare(const Series& side, const Series& other) {
  return {CompareOne(side, other, &Figures::rate), CompareOne(side, other, &Figures::p50),
          CompareOne(side, other, &Figures::p99), CompareOne(side, other, &Figures::cpu)};
}

nlohmann::json ToJson(const Figures& figures) {
  return {{"rate", figures.rate},
          {"p50_seconds", figures.p50},
          {"p99_seconds", figures.p99},
          {"cpu_seconds_per_call", figures.cpu},
          {"faults_per_call", figures.faults},
          {"resident_bytes", figures.resident_bytes},
          {"errors", figures.errors}};
}

nlohmann::json ToJson(const Ratios& ratios) {
  return {{"rate", ToJson(ratios.rate)},
          {"p50", ToJson(ratios.p50)},
          {"p99", ToJson(ratios.p99)},
          {"cpu", ToJson(ratios.cpu)}};
}

}  // namespace quantd::bench
