// 4-byte calls alone, and while another process sends large requests without a pause: what the
// large ones cost the small ones, at quantd and at the echo. See rpc_sections.h.
#include <sys/resource.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "rpc_sections.h"

namespace quantd::bench {
namespace {

// A rename, so that nobody reads half a file.
void WriteCount(const std::string& path, uint64_t calls) {
  std::ofstream(path + ".new") << nlohmann::json{{"grpc", nlohmann::json::array()},
                                                 {"calls", calls}};
  std::filesystem::rename(path + ".new", path);
}

uint64_t ReadCount(const std::string& path) {
  std::ifstream file(path);
  const auto json = nlohmann::json::parse(file, nullptr, false);
  return json.is_object() ? json.value("calls", uint64_t{0}) : 0;
}

struct Pass {
  std::vector<double> alone, beside;  // latencies
  uint64_t large = 0;
  double seconds = 0;  // that large ones were sent
};

void Add(std::vector<double>& all, const Load& load) {
  all.insert(all.end(), load.latencies.begin(), load.latencies.end());
}

void Measure(const Options& options, const Process& server, const Config& large, Side& small,
             bool echo, double seconds, Pass& pass) {
  Add(pass.alone, small.Take(seconds / 2));
  const std::string file = absl::StrCat(options.folder, "/flood.json");
  std::filesystem::remove(file);
  const Process flood({"/proc/self/exe", "--flood", Address(server, large),
                       Method(echo ? "DynamicQuantize" : large.operation), large.operation,
                       absl::StrCat(large.bytes), absl::StrCat(large.in_flight), file},
                      file);
  const uint64_t before = ReadCount(file);
  const Load beside = small.Take(seconds);
  Add(pass.beside, beside);
  pass.seconds += beside.seconds;
  pass.large += ReadCount(file) - before;
}

}  // namespace

int Flood(const std::vector<std::string>& arguments) {
  Config config;
  if (arguments.size() != 6 || !absl::SimpleAtoi(arguments[3], &config.bytes) ||
      !absl::SimpleAtoi(arguments[4], &config.in_flight)) {
    return 2;
  }
  config.operation = arguments[2];
  // It stands for another machine: its own work shall not be what the small calls wait for.
  if (setpriority(PRIO_PROCESS, 0, 19) != 0) return 1;
  const grpc::ByteBuffer request = ToBuffer(Request(config));
  Client client(arguments[0]);
  std::vector<std::thread> threads;
  std::atomic<uint64_t> calls{0};
  std::mutex mutex;
  for (int i = 0; i < config.in_flight; ++i) {
    threads.emplace_back([&] {
      for (;;) {
        grpc::ByteBuffer response;
        if (!client.Call(arguments[1], request, response).ok()) std::exit(1);
        const std::lock_guard lock(mutex);
        WriteCount(arguments[5], ++calls);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return 0;
}

nlohmann::json RunBeside(const Options& options, uint64_t& errors) {
  const Process servers[] = {StartQuantd(options, "beside_quantd"),
                             StartEcho(options, "beside_echo")};
  const char* const names[] = {"quantd", "echo"};
  const Config small{"Quantize", false, 4, 1, 1};
  nlohmann::json rows = nlohmann::json::array();
  std::printf(
      "\nQuantize of 4 B, 1 in flight, while another process sends large ones, 1 in flight\n\n"
      "| server | beside | large /s | p50 us alone | beside | ratio | p99 us alone | beside | "
      "ratio |\n|---|---|---|---|---|---|---|---|---|\n");
  for (const size_t bytes : {size_t{16} << 20, size_t{256} << 20}) {
    if (options.quick && bytes < 256 << 20) continue;
    const Config large{"Quantize", false, bytes, 1, 1};
    // The last argument tells the echo how long its replies are, to both.
    Side(servers[1], large, &servers[0]);
    Side sides[] = {Side(servers[0], small, nullptr), Side(servers[1], small, &servers[0])};
    Pass passes[2];
    for (int round = 0; round < (options.quick ? 2 : 4); ++round) {
      for (size_t i = 0; i < 2; ++i) {
        const size_t side = round % 2 == 0 ? i : 1 - i;
        Measure(options, servers[side], large, sides[side], side == 1, 1.0, passes[side]);
      }
    }
    for (size_t i = 0; i < 2; ++i) {
      const Pass& pass = passes[i];
      const double p50 = Quantile(pass.alone, 0.5), p99 = Quantile(pass.alone, 0.99);
      const double p50_beside = Quantile(pass.beside, 0.5),
                   p99_beside = Quantile(pass.beside, 0.99);
      std::printf("| %s | %s | %.1f | %.0f | %.0f | %.1f | %.0f | %.0f | %.1f |\n", names[i],
                  SizeText(bytes).c_str(), static_cast<double>(pass.large) / pass.seconds,
                  p50 * 1e6, p50_beside * 1e6, p50_beside / p50, p99 * 1e6, p99_beside * 1e6,
                  p99_beside / p99);
      rows.push_back({{"server", names[i]},
                      {"large_bytes", bytes},
                      {"large_rate", static_cast<double>(pass.large) / pass.seconds},
                      {"p50_alone_seconds", p50},
                      {"p50_beside_seconds", p50_beside},
                      {"p99_alone_seconds", p99},
                      {"p99_beside_seconds", p99_beside}});
      // No large call ended: nothing was measured.
      if (pass.large == 0) ++errors;
    }
    std::fflush(stdout);
  }
  return rows;
}

}  // namespace quantd::bench
