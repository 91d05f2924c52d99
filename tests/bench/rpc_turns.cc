// See rpc_turns.h.
#include "rpc_turns.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace quantd::bench {
namespace {

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

}  // namespace

double Quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  const auto nth = values.begin() + static_cast<ptrdiff_t>(q * (values.size() - 1) + 0.5);
  std::nth_element(values.begin(), nth, values.end());
  return *nth;
}

void Series::Add(Load load) {
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

std::vector<Series> TakeTurns(const std::vector<Turn>& sides, int rounds) {
  std::vector<Series> all(sides.size());
  for (const Turn& side : sides) side();
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < sides.size(); ++i) {
      const size_t side = round % 2 == 0 ? i : sides.size() - 1 - i;
      all[side].Add(sides[side]());
    }
  }
  return all;
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

nlohmann::json ToJson(const Ratio& ratio) {
  return {{"median", ratio.median}, {"quartiles", {ratio.low, ratio.high}}};
}

nlohmann::json ToJson(const Ratios& ratios) {
  return {{"rate", ToJson(ratios.rate)},
          {"p50", ToJson(ratios.p50)},
          {"p99", ToJson(ratios.p99)},
          {"cpu", ToJson(ratios.cpu)}};
}

}  // namespace quantd::bench
