// Resident memory of quantd: idle, after thousands of mixed requests, and after a burst of large
// ones. See bench.h.
#include <atomic>
#include <chrono>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/flags/flag.h"
#include "bench.h"
#include "servers.h"

namespace quantd::bench {
namespace {

constexpr int kSeed = 5, kSenders = 3;

struct Mixed {
  Work work;
  bool fails = false;
};

// 4 B to 4 MiB, calls and streams, and some that quantd refuses.
std::vector<Mixed> MakeMix() {
  std::vector<Mixed> mix;
  for (const char* operation : {"Quantize", "DynamicQuantize", "Dequantize", "Stream"}) {
    for (const size_t bytes : {4, 1 << 10, 64 << 10, 1 << 20, 4 << 20}) {
      const std::string request = Request({operation, false, bytes});
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

// Sends until `wanted` requests are answered in total. Counts the wrong responses.
void SendMix(const Process& quantd, const std::vector<Mixed>& mix, uint64_t wanted,
             std::atomic<uint64_t>& sent, std::atomic<uint64_t>& wrong) {
  std::vector<std::thread> senders;
  for (int i = 0; i < kSenders; ++i) {
    senders.emplace_back([&, seed = static_cast<uint32_t>(kSeed + static_cast<int>(sent) + i)] {
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

void RunMemory(Report& report) {
  report.Begin("memory", "Resident memory of quantd", Columns::kNotes);
  const Process quantd = StartQuantd("memory_quantd");
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const auto resident = [&] { return quantd.Read().resident_bytes; };
  const auto note = [&](const char* name, uint64_t bytes) {
    report.Note(name, static_cast<double>(bytes) / (1 << 20), "MiB");
  };
  const auto rest = [&](const char* name) {
    std::this_thread::sleep_for(std::chrono::seconds(10));
    note(name, resident());
  };
  note("idle", resident());
  std::atomic<uint64_t> sent{0}, wrong{0};
  // --quick leaves this out, because it needs two pauses.
  if (!absl::GetFlag(FLAGS_quick)) {
    const std::vector<Mixed> mix = MakeMix();
    SendMix(quantd, mix, 2000, sent, wrong);
    rest("10 s after 2,000 requests of 4 B to 4 MiB");
    SendMix(quantd, mix, 20000, sent, wrong);
    rest("10 s after 20,000");
  }
  const Config burst{"DynamicQuantize", false, 16 << 20, 64};
  const Side side = Calling("burst", quantd, burst);
  wrong += side.turn().errors;
  note("after 64 x 16 MiB in flight", resident());
  rest("10 s after that burst");
  report.CountErrors(wrong);
}

}  // namespace quantd::bench
