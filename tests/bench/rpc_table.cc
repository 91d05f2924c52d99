// quantd beside the echo: every call, size and number in flight. See rpc_sections.h.
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "rpc_sections.h"

namespace quantd::bench {
namespace {

// What --quick measures: the ends that the goals are about.
bool IsQuick(const Config& config) {
  if (config.unix_socket) return false;
  if (config.operation == "Stream") return config.bytes == 4 && config.in_flight == 32;
  return (config.bytes == 4 && config.in_flight != 4) ||
         (config.bytes == 1 << 20 && config.in_flight == 4) ||
         (config.bytes == 16 << 20 && config.in_flight == 1);
}

std::vector<Config> Configs(const Options& options) {
  std::vector<Config> all;
  const auto add = [&](const Config& config) {
    if ((!options.quick || !options.only.empty() || IsQuick(config)) &&
        absl::StrContains(config.Name(), options.only)) {
      all.push_back(config);
    }
  };
  for (const bool unix_socket : {false, true}) {
    for (const char* operation : {"Quantize", "DynamicQuantize", "Dequantize", "Stream"}) {
      for (const size_t bytes : {4, 4 << 10, 64 << 10, 1 << 20, 16 << 20}) {
        for (const int in_flight : {1, 4, 32}) {
          if (bytes == 16 << 20 && in_flight == 32) continue;  // half a gigabyte in flight
          const Config config{operation, unix_socket, bytes, in_flight, 1};
          add(config);
          if (config.operation == "Stream" && bytes <= 64 << 10) {
            add({operation, unix_socket, bytes, in_flight, 8});
          }
        }
      }
    }
  }
  return all;
}

// Of more than a hundred rows those that no goal is about get along with less.
int Rounds(const Config& config, const Options& options) {
  if (IsQuick(config) || !options.only.empty()) return options.rounds;
  return std::max(1, options.rounds / (config.unix_socket ? 4 : 3));
}

void Print(const Config& config, const Figures& quantd, const Figures& echo, const Ratios& to) {
  std::printf(
      "| %s | %s | %d%s | %s | %.0f | %.0f | %.2f | %.2f to %.2f | %.1f | %.2f | %.1f | %.2f | "
      "%.1f | %.2f | %.2f | %.0f |%s\n",
      config.operation.c_str(), SizeText(config.bytes).c_str(), config.in_flight,
      config.window > 1 ? absl::StrCat(" x ", config.window).c_str() : "",
      config.unix_socket ? "unix" : "tcp", quantd.rate, echo.rate, to.rate.median, to.rate.low,
      to.rate.high, quantd.p50 * 1e6, to.p50.median, quantd.p99 * 1e6, to.p99.median,
      quantd.cpu * 1e6, to.cpu.median, quantd.faults, quantd.resident_bytes / (1 << 20),
      quantd.errors + echo.errors > 0 ? " ERRORS" : "");
  std::fflush(stdout);
}

}  // namespace

nlohmann::json RunTable(const Options& options, uint64_t& errors) {
  nlohmann::json rows = nlohmann::json::array();
  const std::vector<Config> configs = Configs(options);
  if (configs.empty()) return rows;
  std::printf(
      "| call | x | in flight | over | quantd /s | echo /s | rate / echo's | quartiles | p50 us | "
      "/ echo's | p99 us | / echo's | CPU us | / echo's | faults | MiB |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
  const Process quantd = StartQuantd(options, "quantd");
  const Process echo = StartEcho(options, "echo");
  for (const Config& config : configs) {
    Side ours(quantd, config, nullptr), theirs(echo, config, &quantd);
    const std::vector<Series> turns = TakeTurns({[&] { return ours.Take(options.turn_seconds); },
                                                 [&] { return theirs.Take(options.turn_seconds); }},
                                                Rounds(config, options));
    const Figures quantd_sum = turns[0].Sum(), echo_sum = turns[1].Sum();
    const Ratios ratios = Compare(turns[0], turns[1]);
    Print(config, quantd_sum, echo_sum, ratios);
    errors += quantd_sum.errors + echo_sum.errors;
    rows.push_back({{"call", config.operation},
                    {"transport", config.unix_socket ? "unix" : "tcp"},
                    {"x_bytes", config.bytes},
                    {"in_flight", config.in_flight},
                    {"window", config.window},
                    {"quantd", ToJson(quantd_sum)},
                    {"echo", ToJson(echo_sum)},
                    {"ratios", ToJson(ratios)}});
  }
  return rows;
}

}  // namespace quantd::bench
