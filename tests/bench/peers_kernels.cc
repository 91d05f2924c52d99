// Measures the core's three operations beside ONNX Runtime's and beside what bounds them.
//
//   peers_kernels --library=.../libonnxruntime.so.1 --models=FOLDER [--quick] [--json=FILE]
//
// One FLOAT tensor, one scale, UINT8; the tensor is used again and again, so that what fits a cache
// is in it. quantd, ONNX Runtime and the limit take turns; figures are medians over the rounds and
// ratios are formed within a round. First, all must give the same bytes.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "peers_onnxruntime.h"
#include "peers_operations.h"
#include "quantd/executor.h"
#include "quantd/targets.h"
#include "timing.h"

ABSL_FLAG(std::string, library, "", "ONNX Runtime's shared library");
ABSL_FLAG(std::string, models, "", "folder that peers_models.py has written");
ABSL_FLAG(bool, quick, false, "fewer rounds, and without 256 MiB");
ABSL_FLAG(std::string, json, "", "write the results to this file");

namespace quantd::bench {
namespace {

struct Result {
  std::string operation;
  size_t bytes = 0;  // of the FLOAT tensor
  int threads = 1;
  double quantd = 0, onnxruntime = 0, limit = 0;  // GB/s of FLOAT
  double to_onnxruntime = 0, to_limit = 0;
};

// Returns when no thread of this process is at work. Threads of a pool that has had work go on
// looking for more: ONNX Runtime's for tens of milliseconds, at the cost of whoever runs next.
void FallAsleep() {
  const auto slice = std::chrono::milliseconds(2);
  const double still = 0.05 * std::chrono::duration<double>(slice).count();
  for (int i = 0; i < 500; ++i) {
    const double before = Now(CLOCK_PROCESS_CPUTIME_ID);
    std::this_thread::sleep_for(slice);
    if (Now(CLOCK_PROCESS_CPUTIME_ID) - before < still) return;
  }
}

// GB/s of FLOAT. What runs on this thread alone is timed by the time that the thread was running,
// so that other programs cost less of a figure; a pool by the clock on the wall.
double Rate(const std::function<void()>& run, size_t bytes, int threads, double seconds) {
  const clockid_t clock = threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
  const size_t batch = std::max<size_t>(1, (size_t{256} << 10) / bytes);
  if (threads > 1) FallAsleep();
  // Until the caches hold what they can and the pool's threads are awake, each on a core of its
  // own: the kernel wakes them beside the caller and moves them milliseconds later.
  const double lead = threads > 1 ? 0.01 : seconds / 10;
  const double start = Now(CLOCK_MONOTONIC);
  do {
    run();
  } while (Now(CLOCK_MONOTONIC) - start < lead);
  size_t passes = 0;
  const double begin = Now(clock);
  double spent;
  do {
    for (size_t i = 0; i < batch; ++i) run();
    passes += batch;
    spent = Now(clock) - begin;
  } while (spent < seconds);
  return static_cast<double>(passes * bytes) / spent / 1e9;
}

// The best of both kinds of stores, in a task a thread and in several.
double LimitRate(const Operation& operation, size_t bytes, int threads, double seconds) {
  double best = 0;
  for (const bool stream : {false, true}) {
    for (const int tasks : {threads, threads > 1 ? 4 * threads : 0}) {
      if (tasks == 0) continue;
      best = std::max(best,
                      Rate([&] { operation.limit(tasks, stream); }, bytes, threads, seconds / 2));
    }
  }
  return best;
}

absl::Status Check(const Operation& operation) {
  absl::Status status = operation.quantd();
  if (status.ok()) status = operation.onnxruntime();
  if (status.ok() && !operation.same()) status = absl::InternalError("answers differ");
  return status;
}

Result Measure(const Operation& operation, size_t bytes, int threads) {
  const bool quick = absl::GetFlag(FLAGS_quick);
  const int rounds = quick ? 7 : 15;
  const double seconds = quick ? 0.005 : 0.015;
  std::vector<double> quantd, onnxruntime, limit, to_onnxruntime, to_limit;
  const std::function<void()> turns[] = {
      [&] {
        quantd.push_back(Rate([&] { operation.quantd().IgnoreError(); }, bytes, threads, seconds));
      },
      [&] {
        onnxruntime.push_back(
            Rate([&] { operation.onnxruntime().IgnoreError(); }, bytes, threads, seconds));
      },
      [&] { limit.push_back(LimitRate(operation, bytes, threads, seconds)); },
  };
  for (int round = 0; round < rounds; ++round) {
    // There and back, so that a machine that slows down slows all sides.
    for (size_t i = 0; i < 3; ++i) turns[round % 2 == 0 ? i : 2 - i]();
    to_onnxruntime.push_back(quantd.back() / onnxruntime.back());
    to_limit.push_back(quantd.back() / limit.back());
  }
  return {operation.name,
          bytes,
          threads,
          Median(quantd),
          Median(onnxruntime),
          Median(limit),
          Median(to_onnxruntime),
          Median(to_limit)};
}

void Print(const Result& result) {
  const bool small = result.bytes < 1 << 20;
  std::printf("| %s | %zu %s | %d | %.1f | %.1f | %.2f | %.1f | %.2f |\n", result.operation.c_str(),
              small ? result.bytes >> 10 : result.bytes >> 20, small ? "KiB" : "MiB",
              result.threads, result.quantd, result.onnxruntime, result.to_onnxruntime,
              result.limit, result.to_limit);
  std::fflush(stdout);
}

bool WriteJson(const std::string& path, const std::string& version,
               const std::vector<Result>& results) {
  nlohmann::json rows = nlohmann::json::array();
  for (const Result& result : results) {
    rows.push_back({{"operation", result.operation},
                    {"bytes", result.bytes},
                    {"threads", result.threads},
                    {"quantd_gb_per_s", result.quantd},
                    {"onnxruntime_gb_per_s", result.onnxruntime},
                    {"limit_gb_per_s", result.limit},
                    {"to_onnxruntime", result.to_onnxruntime},
                    {"to_limit", result.to_limit}});
  }
  std::ofstream file(path);
  file << nlohmann::json{{"onnxruntime", version},
                         {"target", std::string(CurrentTarget())},
                         {"results", rows}}
              .dump(1)
       << "\n";
  file.close();
  return !file.fail();
}

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "peers_kernels: %s\n", status.ToString().c_str());
  return 1;
}

int Main() {
  const auto library = OnnxRuntime::Load(absl::GetFlag(FLAGS_library));
  if (!library.ok()) return Fail(library.status());
  std::vector<size_t> sizes = {size_t{64} << 10, size_t{1} << 20, size_t{16} << 20};
  if (!absl::GetFlag(FLAGS_quick)) sizes.push_back(size_t{256} << 20);
  std::vector<int> threads = {1};
  if (Executor::DefaultThreads() > 1) threads.push_back(Executor::DefaultThreads());
  std::printf(
      "ONNX Runtime %s, quantd's target %s; GB/s of FLOAT\n\n"
      "| operation | FLOAT | threads | quantd | ONNX Runtime | ratio | limit | ratio |\n"
      "|---|---|---|---|---|---|---|---|\n",
      (*library)->version().c_str(), std::string(CurrentTarget()).c_str());
  std::vector<Result> results;
  for (const int count : threads) {
    const Executor executor(count);
    for (const size_t bytes : sizes) {
      Operations operations(**library, absl::GetFlag(FLAGS_models), bytes, executor);
      const auto all = operations.Make();
      if (!all.ok()) return Fail(all.status());
      for (const Operation& operation : *all) {
        const absl::Status status = Check(operation);
        if (!status.ok()) {
          return Fail(
              absl::Status(status.code(), operation.name + ": " + std::string(status.message())));
        }
        results.push_back(Measure(operation, bytes, count));
        Print(results.back());
      }
    }
  }
  const std::string path = absl::GetFlag(FLAGS_json);
  if (!path.empty() && !WriteJson(path, (*library)->version(), results)) {
    return Fail(absl::UnavailableError("can't write " + path));
  }
  return 0;
}

}  // namespace
}  // namespace quantd::bench

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  return quantd::bench::Main();
}
