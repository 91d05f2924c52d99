// Resident memory of quantd: idle, after thousands of mixed requests, and after a burst of large
// ones. See rpc_sections.h.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "rpc_sections.h"

namespace quantd::bench {
namespace {

constexpr uint32_t kSeed = 5;
constexpr int kSenders = 3;

struct Mixed {
  Work work;
  bool fails = false;
};

// 4 B to 4 MiB, calls and streams, and some that quantd refuses.
std::vector<Mixed> MakeMix() {
  std::vector<Mixed> mix;
  for (const char* operation : {"Quantize", "DynamicQuantize", "Dequantize", "Stream"}) {
    for (const size_t bytes : {4, 1 << 10, 64 << 10, 1 << 20, 4 << 20}) {
      const std::string request = Request({operation, false, bytes, 1, 1});
      const bool stream = std::string(operation) == "Stream";
      const Work work{Method(operation), ToBuffer(request), 4, stream ? 2 : 0};
      mix.push_back({work, false});
      if (stream) continue;
      // Cut off in the middle of the tensor.
      mix.push_back({work, true});
      mix.back().work.request = ToBuffer(request.substr(0, request.size() / 2));
    }
  }
  return mix;
}

// Sends until `wanted` requests in all have been answered. Counts the answers that were wrong.
void SendMix(const Process& quantd, const std::vector<Mixed>& mix, uint64_t wanted,
             std::atomic<uint64_t>& sent, std::atomic<uint64_t>& wrong) {
  std::vector<std::thread> senders;
  for (int i = 0; i < kSenders; ++i) {
    senders.emplace_back([&, seed = kSeed + static_cast<uint32_t>(sent) + i] {
      std::mt19937 random(seed);
      Client client(quantd.addresses()[0]);
      while (sent < wanted) {
        const Mixed& next = mix[random() % mix.size()];
        const Load load = client.Run(next.work, 0, quantd);
        sent += load.total;
        wrong += next.fails ? load.total - load.errors : load.errors;
      }
    });
  }
  for (std::thread& sender : senders) sender.join();
}

}  // namespace

nlohmann::json RunMemory(const Options& options, uint64_t& errors) {
  using std::chrono::milliseconds;
  using std::chrono::seconds;
  const auto mib = [](uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
  nlohmann::json result;
  const auto note = [&](const char* name, const char* text, uint64_t bytes) {
    std::printf("| %s | %.1f |\n", text, mib(bytes));
    std::fflush(stdout);
    result[name] = bytes;
  };
  std::printf("\nResident memory of quantd, seed %u\n\n| when | MiB |\n|---|---|\n", kSeed);
  const Process quantd = StartQuantd(options, "memory_quantd");
  std::this_thread::sleep_for(milliseconds(200));
  const auto resident = [&] { return quantd.Read().resident_bytes; };
  const auto peak_of = [&](const std::function<void()>& run) {
    std::atomic<bool> over{false};
    uint64_t peak = 0;
    std::thread watch([&] {
      while (!over) {
        peak = std::max(peak, resident());
        std::this_thread::sleep_for(milliseconds(2));
      }
    });
    run();
    over = true;
    watch.join();
    return peak;
  };
  note("idle_bytes", "idle", resident());
  std::atomic<uint64_t> sent{0}, wrong{0};
  const auto rest = [&](const char* name) {
    std::this_thread::sleep_for(seconds(10));
    note(name, "10 s later", resident());
  };
  // --quick has no time for what needs two pauses.
  if (!options.quick) {
    const std::vector<Mixed> mix = MakeMix();
    SendMix(quantd, mix, 2000, sent, wrong);
    note("mixed_2000_bytes", "after 2,000 requests of 4 B to 4 MiB", resident());
    rest("mixed_2000_rested_bytes");
    SendMix(quantd, mix, 20000, sent, wrong);
    note("mixed_20000_bytes", "after 20,000", resident());
    rest("mixed_20000_rested_bytes");
  }
  {
    Client client(quantd.addresses()[0]);
    const Work work{Method("DynamicQuantize"),
                    ToBuffer(Request({"DynamicQuantize", false, 16 << 20, 64, 1})), 64, 0};
    const uint64_t peak = peak_of([&] { wrong += client.Run(work, 0, quantd).errors; });
    note("burst_peak_bytes", "peak with 64 x 16 MiB in flight", peak);
    note("burst_end_bytes", "at the end of that burst", resident());
  }
  rest("burst_rested_bytes");
  result["requests"] = sent.load();
  errors += wrong;
  return result;
}

}  // namespace quantd::bench
