// Measures the kernels beside what bounds them.
//
//   kernels_bench                    64 KiB, 1, 16 and 256 MiB; one thread and all
//   kernels_bench --quick            shorter, without 256 MiB
//   kernels_bench --filter=u8 --sizes=1MiB --simd=avx2 --json=out.json
//
// Every case takes its turn in every round, so that a machine that slows down slows all of them;
// figures are medians over the rounds, ratios are formed within a round. Each thread works on
// tensors of its own, again and again, so that what fits a cache is in it.
#include <algorithm>
#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "kernels_cases.h"
#include "kernels_report.h"
#include "quantd/executor.h"
#include "quantd/targets.h"
#include "timing.h"

ABSL_FLAG(bool, quick, false, "shorter, and without 256 MiB");
ABSL_FLAG(std::string, filter, "", "only cases whose name has this; the limits always run");
ABSL_FLAG(std::string, sizes, "", "such as 64KiB,1MiB: bytes of x, were it FLOAT");
ABSL_FLAG(std::string, threads, "", "such as 1,2; default: one and all");
ABSL_FLAG(std::string, simd, "", "target; default: the best one, or QUANTD_SIMD");
ABSL_FLAG(std::string, stream, "auto",
          "on, off, or auto: streaming stores for tensors larger than the caches");
ABSL_FLAG(double, milliseconds, 0, "time of one measurement; default 10, or 4 with --quick");
ABSL_FLAG(int, rounds, 0, "default 7, or 5 with --quick");
ABSL_FLAG(std::string, json, "", "write the results to this file");

namespace quantd::bench {
namespace {

constexpr size_t kPad = 4096;
constexpr size_t kStreamFrom = size_t{16} << 20;

// The tensors of one thread.
struct Buffers {
  explicit Buffers(size_t bytes) : x(Allocate(bytes + kPad)), y(Allocate(bytes + kPad)) {
    auto* floats = reinterpret_cast<float*>(x.get());
    for (size_t i = 0; i < bytes / sizeof(float); ++i) {
      floats[i] = Value(i);
    }
    std::memset(y.get(), 0, bytes + kPad);
  }
  static std::unique_ptr<uint8_t, void (*)(void*)> Allocate(size_t bytes) {
    return {static_cast<uint8_t*>(std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096)),
            std::free};
  }
  std::unique_ptr<uint8_t, void (*)(void*)> x;
  std::unique_ptr<uint8_t, void (*)(void*)> y;
};

// Time that this thread was running, so that other programs on the machine cost less of a figure.
double Seconds() { return Now(CLOCK_THREAD_CPUTIME_ID); }

// GB/s of FLOAT of all threads together.
double Measure(const Case& c, size_t size, bool stream, std::vector<Buffers>& buffers,
               double milliseconds) {
  std::barrier start(static_cast<std::ptrdiff_t>(buffers.size()));
  std::vector<double> rates(buffers.size());
  const auto work = [&](size_t thread) {
    Buffers& own = buffers[thread];
    c.run(own.x.get(), size, own.y.get(), stream);  // into the cache
    start.arrive_and_wait();
    const double begin = Seconds();
    double now;
    size_t passes = 0;
    // Small tensors: look at the clock now and then only.
    const size_t batch = std::max<size_t>(1, (size_t{1} << 18) / size);
    do {
      for (size_t i = 0; i < batch; ++i) c.run(own.x.get(), size, own.y.get(), stream);
      passes += batch;
      now = Seconds();
    } while (now < begin + milliseconds * 1e-3);
    rates[thread] = static_cast<double>(passes * size * sizeof(float)) / (now - begin) / 1e9;
  };
  std::vector<std::thread> others;
  for (size_t t = 1; t < buffers.size(); ++t) others.emplace_back(work, t);
  work(0);
  for (std::thread& thread : others) thread.join();
  double sum = 0;
  for (const double rate : rates) sum += rate;
  return sum;
}

// All cases at one size and number of threads.
void MeasureAll(const std::vector<Case>& cases, size_t bytes, int threads,
                std::vector<Result>& results) {
  const bool quick = absl::GetFlag(FLAGS_quick);
  const int rounds = absl::GetFlag(FLAGS_rounds) > 0 ? absl::GetFlag(FLAGS_rounds) : quick ? 5 : 7;
  const double milliseconds = absl::GetFlag(FLAGS_milliseconds) > 0
                                  ? absl::GetFlag(FLAGS_milliseconds)
                              : quick ? 4
                                      : 10;
  const std::string mode = absl::GetFlag(FLAGS_stream);
  const bool stream = mode == "on" || (mode == "auto" && bytes >= kStreamFrom);
  std::vector<Buffers> buffers;
  for (int t = 0; t < threads; ++t) buffers.emplace_back(bytes);
  const size_t size = bytes / sizeof(float);
  std::vector<std::vector<double>> rates(cases.size()), ratios(cases.size());
  for (int round = 0; round < rounds; ++round) {
    double limits[kLimits] = {};
    for (size_t i = 0; i < cases.size(); ++i) {
      const Case& c = cases[i];
      if (c.one_size && bytes != size_t{1} << 20) continue;
      double rate = Measure(c, size, stream, buffers, milliseconds);
      if (c.is_limit) {
        // The limit is the better of both kinds of stores.
        if (mode == "auto") {
          rate = std::max(rate, Measure(c, size, !stream, buffers, milliseconds));
        }
        limits[static_cast<int>(c.limit)] = rate;
      }
      rates[i].push_back(rate);
      ratios[i].push_back(rate / limits[static_cast<int>(c.limit)]);
    }
  }
  for (size_t i = 0; i < cases.size(); ++i) {
    if (rates[i].empty()) continue;
    results.push_back({cases[i].name, LimitName(cases[i].limit), bytes, threads, Median(rates[i]),
                       Median(ratios[i])});
  }
}

bool ParseSizes(const std::string& text, std::vector<size_t>& sizes) {
  for (absl::string_view item : absl::StrSplit(text, ',')) {
    int shift = 0;
    if (absl::ConsumeSuffix(&item, "KiB")) shift = 10;
    if (absl::ConsumeSuffix(&item, "MiB")) shift = 20;
    size_t value;
    if (shift == 0 || !absl::SimpleAtoi(item, &value) || value == 0) return false;
    sizes.push_back(value << shift);
  }
  return true;
}

int Main() {
  absl::Status status = CheckEnvironmentTarget();
  if (status.ok() && !absl::GetFlag(FLAGS_simd).empty()) {
    status = SelectTarget(absl::GetFlag(FLAGS_simd));
  }
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
    return 2;
  }
  std::vector<size_t> sizes;
  if (!absl::GetFlag(FLAGS_sizes).empty()) {
    if (!ParseSizes(absl::GetFlag(FLAGS_sizes), sizes)) {
      std::fprintf(stderr, "--sizes: such as 64KiB,1MiB\n");
      return 2;
    }
  } else {
    sizes = {size_t{64} << 10, size_t{1} << 20, size_t{16} << 20};
    if (!absl::GetFlag(FLAGS_quick)) sizes.push_back(size_t{256} << 20);
  }
  std::vector<int> threads = {1};
  if (Executor::DefaultThreads() > 1) threads.push_back(Executor::DefaultThreads());
  if (!absl::GetFlag(FLAGS_threads).empty()) {
    threads.clear();
    for (absl::string_view item : absl::StrSplit(absl::GetFlag(FLAGS_threads), ',')) {
      int count;
      if (!absl::SimpleAtoi(item, &count) || count < 1 || count > 1024) {
        std::fprintf(stderr, "--threads: such as 1,2\n");
        return 2;
      }
      threads.push_back(count);
    }
  }
  std::vector<Case> cases;
  for (Case& c : AllCases()) {
    if (c.is_limit || absl::StrContains(c.name, absl::GetFlag(FLAGS_filter))) {
      cases.push_back(std::move(c));
    }
  }
  const std::string target(CurrentTarget());
  std::printf("target %s, %zu cases\n", target.c_str(), cases.size());
  std::vector<Result> results;
  for (const int count : threads) {
    for (const size_t size : sizes) MeasureAll(cases, size, count, results);
    PrintTable(results, count);
    std::fflush(stdout);
  }
  const std::string path = absl::GetFlag(FLAGS_json);
  if (!path.empty() && !WriteJson(results, target, path)) {
    std::fprintf(stderr, "can't write %s\n", path.c_str());
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace quantd::bench

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  return quantd::bench::Main();
}
