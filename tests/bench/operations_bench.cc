// Measures the three operations as the server runs them: a plan, then its execution.
//
//   operations_bench                  every case at 1 MiB; large tensors; one thread and all
//   operations_bench --quick          shorter, and without 256 MiB
//   operations_bench --filter="^Quantize FLOAT -> .*blocks" --threads=1 --json=out.json
//
// All runs on a thread of the pool, with the allocator set as the server sets it. GB/s of FLOAT:
// four bytes an element, whatever its type is. Cases take turns in every round, so that a machine
// that slows down slows all of them; figures are medians over the rounds, ratios are formed within
// a round. "of" is the ratio to the same pair of types with one scale (pieces: to the same bytes in
// one piece), or to the limit of a large tensor.
#include <malloc.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <functional>
#include <future>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "operations_cases.h"
#include "operations_large.h"
#include "quantd/executor.h"
#include "quantd/targets.h"
#include "timing.h"

ABSL_FLAG(bool, quick, false, "shorter, and without 256 MiB");
ABSL_FLAG(std::string, filter, "", "only cases whose name this regular expression is found in");
ABSL_FLAG(std::string, threads, "", "such as 1,2; default: one and all");
ABSL_FLAG(std::string, sizes, "", "MiB of the large tensors; default 16,256, or 16 with --quick");
ABSL_FLAG(double, milliseconds, 0, "time of one measurement; default 4, or 1.5 with --quick");
ABSL_FLAG(int, rounds, 0, "default 7, or 5 with --quick");
ABSL_FLAG(std::string, json, "", "write the results to this file");

namespace quantd::bench {
namespace {

struct Result {
  std::string operation, input, output, variant, base;
  size_t bytes = 0;
  int threads = 1;
  double rate = 0;
  double ratio = 0;  // to the base; 0: there is none
};

// GB/s of FLOAT. One thread is timed by the time that it was running, so that other programs cost
// less of a figure; a pool by the clock on the wall.
double Rate(const std::function<void()>& run, size_t bytes, int threads, double seconds) {
  const clockid_t clock = threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
  run();
  size_t passes = 0;
  const double begin = Now(clock);
  double spent;
  do {
    run();
    ++passes;
    spent = Now(clock) - begin;
  } while (spent < seconds);
  return static_cast<double>(passes * bytes) / spent / 1e9;
}

struct Settings {
  int rounds;
  double seconds;
  std::regex filter;
};

std::string NameOf(const Case& c) {
  return absl::StrCat(c.operation, " ", c.input, " -> ", c.output, ", ", c.variant);
}

absl::Status MeasureCases(const std::vector<Case>& cases, const Settings& settings,
                          const Executor& executor, std::vector<Result>& results) {
  // Those that are asked for, and what they are compared with.
  std::vector<bool> wanted(cases.size()), needed(cases.size());
  for (size_t i = 0; i < cases.size(); ++i) {
    wanted[i] = std::regex_search(NameOf(cases[i]), settings.filter);
    needed[i] = needed[i] || wanted[i];
    if (wanted[i] && cases[i].base >= 0) needed[static_cast<size_t>(cases[i].base)] = true;
  }
  std::vector<std::vector<double>> rates(cases.size());
  for (int round = 0; round < settings.rounds; ++round) {
    for (size_t i = 0; i < cases.size(); ++i) {
      if (!needed[i]) continue;
      if (absl::Status status = cases[i].run(executor); !status.ok()) {
        return absl::Status(status.code(), absl::StrCat(NameOf(cases[i]), ": ", status.message()));
      }
      rates[i].push_back(Rate([&] { cases[i].run(executor).IgnoreError(); },
                              static_cast<size_t>(cases[i].elements) * sizeof(float),
                              executor.threads(), settings.seconds));
    }
  }
  for (size_t i = 0; i < cases.size(); ++i) {
    if (!wanted[i]) continue;
    const Case& c = cases[i];
    Result result{c.operation,
                  c.input,
                  c.output,
                  c.variant,
                  "",
                  static_cast<size_t>(c.elements) * sizeof(float),
                  executor.threads(),
                  Median(rates[i])};
    if (c.base >= 0) {
      const auto base = static_cast<size_t>(c.base);
      std::vector<double> ratios;
      for (size_t round = 0; round < rates[i].size(); ++round) {
        ratios.push_back(rates[i][round] / rates[base][round]);
      }
      result.base = cases[base].variant;
      result.ratio = Median(ratios);
    }
    results.push_back(result);
  }
  return absl::OkStatus();
}

// A way to do what bounds an operation: which part, in how many tasks, with which stores.
struct Way {
  size_t part;
  int tasks;
  bool stream;
  std::vector<double> rates;
};

// Of the parts of a limit one after the other, each in the way that is fastest on the whole: the
// fastest of each round would be the luckiest one.
std::vector<double> LimitRates(const std::vector<Way>& ways, size_t parts, size_t rounds) {
  std::vector<double> times(rounds);
  for (size_t part = 0; part < parts; ++part) {
    const Way* best = nullptr;
    for (const Way& way : ways) {
      if (way.part != part) continue;
      if (best == nullptr || Median(way.rates) > Median(best->rates)) best = &way;
    }
    for (size_t round = 0; round < rounds; ++round) times[round] += 1 / best->rates[round];
  }
  for (double& time : times) time = 1 / time;
  return times;
}

absl::Status MeasureLarge(size_t bytes, const Settings& settings, const Executor& executor,
                          std::vector<Result>& results) {
  // A few passes at least.
  const double seconds = std::max(settings.seconds, static_cast<double>(bytes) / 5e9);
  const auto rate = [&](const std::function<void()>& run) {
    return Rate(run, bytes, executor.threads(), seconds);
  };
  for (const LargeCase& c : LargeCases(bytes)) {
    const std::string variant = absl::StrCat(bytes >> 20, " MiB");
    if (!std::regex_search(absl::StrCat(c.operation, " ", variant), settings.filter)) continue;
    if (absl::Status status = c.run(executor); !status.ok()) return status;
    std::vector<Way> ways;
    for (size_t part = 0; part < c.limits.size(); ++part) {
      for (const bool stream : {false, true}) {
        ways.push_back({part, executor.threads(), stream, {}});
        ways.push_back({part, 8 * executor.threads(), stream, {}});
      }
    }
    std::vector<double> rates, ratios;
    for (int round = 0; round < settings.rounds; ++round) {
      rates.push_back(rate([&] { c.run(executor).IgnoreError(); }));
      for (Way& way : ways) {
        way.rates.push_back(rate([&] { c.limits[way.part](executor, way.tasks, way.stream); }));
      }
    }
    const std::vector<double> limits = LimitRates(ways, c.limits.size(), rates.size());
    for (size_t i = 0; i < rates.size(); ++i) ratios.push_back(rates[i] / limits[i]);
    const bool widens = c.operation == "Dequantize";
    results.push_back({c.operation, widens ? "UINT8" : "FLOAT", widens ? "FLOAT" : "UINT8", variant,
                       c.limit_name, bytes, executor.threads(), Median(rates), Median(ratios)});
  }
  return absl::OkStatus();
}

void Print(const std::vector<Result>& results, const std::vector<int>& threads) {
  std::printf("%-16s %-15s %-15s %-44s", "GB/s of FLOAT", "from", "to", "");
  for (const int count : threads) {
    std::printf("  %2d thread%s   of ", count, count == 1 ? " " : "s");
  }
  std::printf("\n");
  const size_t rows = results.size() / threads.size();
  for (size_t i = 0; i < rows; ++i) {
    const Result& first = results[i];
    std::printf("%-16s %-15s %-15s %-44s", first.operation.c_str(), first.input.c_str(),
                first.output.c_str(), first.variant.c_str());
    for (size_t t = 0; t < threads.size(); ++t) {
      const Result& result = results[t * rows + i];
      std::printf(" %10.1f", result.rate);
      if (result.base.empty()) {
        std::printf("       ");
      } else {
        std::printf("  %4.2f ", result.ratio);
      }
    }
    std::printf("\n");
  }
}

bool WriteJson(const std::vector<Result>& results, const std::string& path) {
  nlohmann::json rows = nlohmann::json::array();
  for (const Result& r : results) {
    nlohmann::json row = {{"operation", r.operation}, {"input", r.input}, {"output", r.output},
                          {"variant", r.variant},     {"bytes", r.bytes}, {"threads", r.threads},
                          {"gb_per_s", r.rate}};
    if (!r.base.empty()) {
      row["base"] = r.base;
      row["ratio"] = r.ratio;
    }
    rows.push_back(std::move(row));
  }
  std::ofstream file(path);
  file << nlohmann::json{{"target", std::string(CurrentTarget())}, {"results", rows}}.dump(1)
       << "\n";
  file.close();
  return file.good();
}

// Positive numbers between commas; `text` is checked by its user.
absl::StatusOr<std::vector<int>> Numbers(const std::string& text) {
  std::vector<int> numbers;
  for (const absl::string_view item : absl::StrSplit(text, ',')) {
    int number;
    if (!absl::SimpleAtoi(item, &number) || number < 1 || number > 4096) {
      return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" is no list such as 1,2"));
    }
    numbers.push_back(number);
  }
  return numbers;
}

// Where the server works: a thread of the pool.
absl::Status OnPool(const Executor& executor, const std::function<absl::Status()>& work) {
  std::promise<absl::Status> done;
  executor.Enqueue([&] { done.set_value(work()); });
  return done.get_future().get();
}

absl::Status Run() {
  const bool quick = absl::GetFlag(FLAGS_quick);
  std::string threads_text = absl::GetFlag(FLAGS_threads);
  if (threads_text.empty()) {
    const int all = Executor::DefaultThreads();
    threads_text = all == 1 ? "1" : absl::StrCat("1,", all);
  }
  std::string sizes_text = absl::GetFlag(FLAGS_sizes);
  if (sizes_text.empty()) sizes_text = quick ? "1,16" : "1,16,256";
  const auto threads = Numbers(threads_text);
  if (!threads.ok()) return threads.status();
  const auto sizes = Numbers(sizes_text);
  if (!sizes.ok()) return sizes.status();
  Settings settings{quick ? 5 : 7, quick ? 0.0015 : 0.004, std::regex(absl::GetFlag(FLAGS_filter))};
  if (absl::GetFlag(FLAGS_rounds) > 0) settings.rounds = absl::GetFlag(FLAGS_rounds);
  if (absl::GetFlag(FLAGS_milliseconds) > 0) {
    settings.seconds = absl::GetFlag(FLAGS_milliseconds) * 1e-3;
  }
  if (absl::Status status = CheckEnvironmentTarget(); !status.ok()) return status;

  const std::vector<Case> cases = AllCases();
  std::vector<Result> results;
  for (const int count : *threads) {
    const Executor executor(count);
    const absl::Status status = OnPool(executor, [&] {
      absl::Status measured = MeasureCases(cases, settings, executor, results);
      for (const int size : *sizes) {
        if (!measured.ok()) return measured;
        measured = MeasureLarge(static_cast<size_t>(size) << 20, settings, executor, results);
      }
      return measured;
    });
    if (!status.ok()) return status;
  }
  std::printf("target %s\n", std::string(CurrentTarget()).c_str());
  Print(results, *threads);
  const std::string path = absl::GetFlag(FLAGS_json);
  if (!path.empty() && !WriteJson(results, path)) {
    return absl::UnavailableError(absl::StrCat("can't write ", path));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace quantd::bench

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, INT_MAX);
  mallopt(M_TOP_PAD, 8 << 20);
  mallopt(M_ARENA_MAX, 1);
  const absl::Status status = quantd::bench::Run();
  if (status.ok()) return 0;
  std::fprintf(stderr, "operations_bench: %s\n", status.ToString().c_str());
  return 1;
}
