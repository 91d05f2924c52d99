// What more cores and more connections do. See rpc_sections.h.
#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rpc_sections.h"

namespace quantd::bench {
namespace {

std::vector<int> Cpus() {
  cpu_set_t set;
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

// One thread of the load can't keep many cores busy.
int LoadThreads() { return std::clamp(static_cast<int>(Cpus().size()) / 2, 1, 8); }

// quantd on 1, 2, 4, ... and all cores; they take turns.
nlohmann::json Cores(const Options& options, uint64_t& errors) {
  const std::vector<int> cpus = Cpus();
  std::vector<int> counts;
  for (int count = 1; count < static_cast<int>(cpus.size()); count *= 2) counts.push_back(count);
  counts.push_back(static_cast<int>(cpus.size()));
  std::vector<std::unique_ptr<Process>> servers;
  for (const int count : counts) {
    const std::vector<int> own(cpus.begin(), cpus.begin() + count);
    servers.emplace_back(new Process(StartQuantd(options, absl::StrCat("cores_", count),
                                                 {absl::StrCat("--threads=", count)}, own)));
  }
  std::printf(
      "\nDynamicQuantize by quantd on some of %zu cores; the load (%d threads) may use all of "
      "them\n\n"
      "| x | in flight | cores | calls /s | to 1 core's | quartiles | p50 us | p99 us | CPU us |\n"
      "|---|---|---|---|---|---|---|---|---|\n",
      cpus.size(), LoadThreads());
  nlohmann::json rows = nlohmann::json::array();
  const Config configs[] = {{"DynamicQuantize", false, 64 << 10, 32, 1},
                            {"DynamicQuantize", false, 1 << 20, 16, 1}};
  for (const Config& config : configs) {
    std::deque<Side> sides;
    std::vector<Turn> turns;
    for (const auto& server : servers) {
      sides.emplace_back(*server, config, nullptr, LoadThreads(), LoadThreads());
      turns.push_back(
          [side = &sides.back(), &options] { return side->Take(options.turn_seconds); });
    }
    const std::vector<Series> all = TakeTurns(turns, options.rounds);
    for (size_t i = 0; i < all.size(); ++i) {
      const Figures sum = all[i].Sum();
      const Ratio ratio = Compare(all[i], all[0]).rate;
      std::printf("| %s | %d | %d | %.0f | %.2f | %.2f to %.2f | %.0f | %.0f | %.1f |\n",
                  SizeText(config.bytes).c_str(), config.in_flight, counts[i], sum.rate,
                  ratio.median, ratio.low, ratio.high, sum.p50 * 1e6, sum.p99 * 1e6, sum.cpu * 1e6);
      rows.push_back({{"x_bytes", config.bytes},
                      {"in_flight", config.in_flight},
                      {"cores", counts[i]},
                      {"quantd", ToJson(sum)},
                      {"to_one_core", ToJson(ratio)}});
      errors += sum.errors;
    }
    std::fflush(stdout);
  }
  return rows;
}

nlohmann::json Connections(const Options& options, uint64_t& errors) {
  const Process quantd = StartQuantd(options, "connections_quantd");
  const Process echo = StartEcho(options, "connections_echo");
  std::printf(
      "\nDynamicQuantize over several connections, beside the echo\n\n"
      "| x | connections | in flight | quantd /s | to 1 connection's | echo /s | rate / echo's | "
      "quartiles | p99 us | / echo's |\n|---|---|---|---|---|---|---|---|---|---|\n");
  nlohmann::json rows = nlohmann::json::array();
  for (const size_t bytes : {size_t{4}, size_t{64} << 10}) {
    double first = 0;
    for (const int connections : {1, 8, 64}) {
      const Config config{"DynamicQuantize", false, bytes, std::max(8, connections), 1};
      const int threads = std::min(connections, LoadThreads());
      Side ours(quantd, config, nullptr, connections, threads);
      Side theirs(echo, config, &quantd, connections, threads);
      const std::vector<Series> all = TakeTurns({[&] { return ours.Take(options.turn_seconds); },
                                                 [&] { return theirs.Take(options.turn_seconds); }},
                                                options.rounds);
      const Figures sum = all[0].Sum(), echo_sum = all[1].Sum();
      const Ratios ratios = Compare(all[0], all[1]);
      if (first == 0) first = sum.rate;
      std::printf("| %s | %d | %d | %.0f | %.2f | %.0f | %.2f | %.2f to %.2f | %.0f | %.2f |\n",
                  SizeText(bytes).c_str(), connections, config.in_flight, sum.rate,
                  sum.rate / first, echo_sum.rate, ratios.rate.median, ratios.rate.low,
                  ratios.rate.high, sum.p99 * 1e6, ratios.p99.median);
      std::fflush(stdout);
      rows.push_back({{"x_bytes", bytes},
                      {"connections", connections},
                      {"in_flight", config.in_flight},
                      {"quantd", ToJson(sum)},
                      {"echo", ToJson(echo_sum)},
                      {"ratios", ToJson(ratios)}});
      errors += sum.errors + echo_sum.errors;
    }
  }
  return rows;
}

}  // namespace

nlohmann::json RunScaling(const Options& options, uint64_t& errors) {
  nlohmann::json result;
  result["cores"] = Cores(options, errors);
  result["connections"] = Connections(options, errors);
  return result;
}

}  // namespace quantd::bench
