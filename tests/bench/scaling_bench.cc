// What more threads do for the core's three operations, outside any server: one FLOAT tensor, one
// scale, UINT8.
//
//   scaling_bench [--quick] [--json=FILE]
//
// Pools of 1, 2, 4, ... and all threads take turns; ratios to one thread are formed within a round.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/status/status.h"
#include "quantd/dequantize.h"
#include "quantd/dynamic_quantize.h"
#include "quantd/executor.h"
#include "quantd/quantize.h"
#include "timing.h"

ABSL_FLAG(bool, quick, false, "fewer rounds");
ABSL_FLAG(std::string, json, "", "write the results to this file");

namespace quantd::bench {
namespace {

using Clock = std::chrono::steady_clock;

// Tensors of one size, and the operations on them.
class Tensors {
 public:
  explicit Tensors(size_t bytes) : x_(bytes / sizeof(float)), codes_(x_.size()), y_(x_.size()) {
    for (size_t i = 0; i < x_.size(); ++i) x_[i] = std::sin(static_cast<float>(i));
    for (size_t i = 0; i < x_.size(); ++i) codes_[i] = static_cast<uint8_t>(i * 37);
  }

  absl::Status Run(int operation, const Executor& executor) {
    const auto size = static_cast<int64_t>(x_.size());
    const ByteChunks x({reinterpret_cast<const uint8_t*>(x_.data()), x_.size() * sizeof(float)});
    const ByteChunks codes({codes_.data(), codes_.size()});
    const ByteChunks scale({reinterpret_cast<const uint8_t*>(&scale_), sizeof(scale_)});
    const absl::Span<uint8_t> y(reinterpret_cast<uint8_t*>(y_.data()), y_.size() * sizeof(float));
    const auto never = [] { return false; };
    if (operation == 0) {
      QuantizeParameters parameters;
      parameters.x = {DataType::kFloat, {size}, x};
      parameters.scale = {DataType::kFloat, {}, scale};
      const auto plan = PlanQuantize(parameters);
      if (!plan.ok()) return plan.status();
      return Quantize(*plan, x, executor, never, y.first(x_.size()), nullptr);
    }
    if (operation == 1) {
      DynamicQuantizeParameters parameters;
      parameters.x = {DataType::kFloat, {size}, x};
      const auto plan = PlanDynamicQuantize(parameters);
      if (!plan.ok()) return plan.status();
      float found = 0;
      uint8_t zero_point = 0;
      const absl::Span<uint8_t> to(reinterpret_cast<uint8_t*>(&found), sizeof(found));
      return DynamicQuantize(*plan, x, executor, never,
                             {y.first(x_.size()), to, absl::MakeSpan(&zero_point, 1), {}}, nullptr);
    }
    DequantizeParameters parameters;
    parameters.x = {DataType::kUint8, {size}, codes};
    parameters.scale = {DataType::kFloat, {}, scale};
    const auto plan = PlanDequantize(parameters);
    if (!plan.ok()) return plan.status();
    return Dequantize(*plan, codes, executor, never, y);
  }

 private:
  std::vector<float> x_;
  std::vector<uint8_t> codes_;
  std::vector<float> y_;
  const float scale_ = 1.0f / 64;
};

// GB/s of FLOAT, with the pool's threads awake.
double Rate(const std::function<void()>& run, size_t bytes, double seconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(2));  // the last pool falls asleep
  const auto since = [](Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  };
  for (const auto begin = Clock::now(); since(begin) < seconds / 5;) run();
  size_t passes = 0;
  const auto begin = Clock::now();
  do {
    run();
    ++passes;
  } while (since(begin) < seconds);
  return static_cast<double>(passes * bytes) / since(begin) / 1e9;
}

int Main() {
  const int rounds = absl::GetFlag(FLAGS_quick) ? 7 : 15;
  std::vector<std::unique_ptr<Executor>> pools;
  const int all = Executor::DefaultThreads();
  for (int threads = 1; threads < all; threads *= 2) {
    pools.push_back(std::make_unique<Executor>(threads));
  }
  pools.push_back(std::make_unique<Executor>(all));
  std::printf(
      "GB/s of FLOAT\n\n| operation | FLOAT | threads | GB/s | to 1 thread's |\n"
      "|---|---|---|---|---|\n");
  nlohmann::json rows = nlohmann::json::array();
  const char* const names[] = {"Quantize", "DynamicQuantize", "Dequantize"};
  for (const size_t bytes : {size_t{1} << 20, size_t{16} << 20}) {
    Tensors tensors(bytes);
    for (int operation = 0; operation < 3; ++operation) {
      std::vector<std::vector<double>> rates(pools.size()), ratios(pools.size());
      for (int round = 0; round < rounds; ++round) {
        std::vector<double> now(pools.size());
        for (size_t i = 0; i < pools.size(); ++i) {
          const size_t pool = round % 2 == 0 ? i : pools.size() - 1 - i;
          absl::Status status;
          now[pool] =
              Rate([&] { status.Update(tensors.Run(operation, *pools[pool])); }, bytes, 0.01);
          if (!status.ok()) {
            std::fprintf(stderr, "scaling_bench: %s\n", status.ToString().c_str());
            return 1;
          }
        }
        for (size_t i = 0; i < pools.size(); ++i) {
          rates[i].push_back(now[i]);
          ratios[i].push_back(now[i] / now[0]);
        }
      }
      for (size_t i = 0; i < pools.size(); ++i) {
        std::printf("| %s | %zu MiB | %d | %.1f | %.2f |\n", names[operation], bytes >> 20,
                    pools[i]->threads(), Median(rates[i]), Median(ratios[i]));
        rows.push_back({{"operation", names[operation]},
                        {"bytes", bytes},
                        {"threads", pools[i]->threads()},
                        {"gb_per_s", Median(rates[i])},
                        {"to_one_thread", Median(ratios[i])}});
      }
      std::fflush(stdout);
    }
  }
  const std::string path = absl::GetFlag(FLAGS_json);
  if (path.empty()) return 0;
  std::ofstream file(path);
  file << rows.dump(1) << "\n";
  file.close();
  return file.fail() ? 1 : 0;
}

}  // namespace
}  // namespace quantd::bench

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  return quantd::bench::Main();
}
