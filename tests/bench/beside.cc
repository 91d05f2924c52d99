// 4-byte calls alone, and while another process calls all the time. See bench.h.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <thread>

#include "absl/flags/flag.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "bench.h"
#include "servers.h"

namespace quantd::bench {
namespace {

// A process that disturbs others: it keeps large calls in flight as long as this object lives.
class Flood {
 public:
  // Makes the calls of `large` to the server, and returns when the first one is answered. `method`
  // differs for the echo, which has one for all and knows the size of its replies already.
  Flood(const Process& server, const Config& large, const std::string& method)
      : file_(Folder() + "/flood") {
    std::filesystem::remove(file_);
    process_ = std::make_unique<Process>(
        std::vector<std::string>{"/proc/self/exe", "flood", Address(server, large), Method(method),
                                 large.operation, absl::StrCat(large.bytes),
                                 large.report_error ? "1" : "0", absl::StrCat(large.in_flight),
                                 absl::StrCat(large.connections), file_},
        "");
    for (int i = 0; i < 3000 && calls() == 0; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }

  // The number of calls that have been answered.
  uint64_t calls() const {
    std::error_code none;
    const uint64_t size = std::filesystem::file_size(file_, none);
    return none ? 0 : size;
  }

 private:
  const std::string file_;
  std::unique_ptr<Process> process_;
};

const Config kLarge[] = {
    {"Quantize", false, 256 << 20, 1},
    // Heavy in computing: scalar kernels, and error reports. For the row "of its own", another
    // quantd serves the small calls on the same machine.
    {"Quantize", false, 4 << 20, 16, 1, 4, true},
    // Not with --quick.
    {"Quantize", false, 4 << 20, 16, 1, 1, true},
    {"Quantize", false, 16 << 20, 1},
    {"Quantize", false, 16 << 20, 4, 1, 4},
    {"Quantize", false, 256 << 20, 2, 1, 2},
};

// Turns of `small` while the large calls go to `server`, until the turn ends.
Side Beside(const std::string& name, const Side& small, const Process& server, const Config& large,
            const std::string& method) {
  return {name, [=, &server, &large] {
            const Flood flood(server, large, method);
            const uint64_t before = flood.calls();
            Load load;
            for (int i = 0; i < 5 && flood.calls() == before; ++i) load = small.turn();
            if (flood.calls() == before) ++load.errors;
            return load;
          }};
}

}  // namespace

void RunBeside(Report& report) {
  report.Begin("beside",
               "Quantize of 4 B, 1 in flight, while another process calls; the echo has the same "
               "traffic, a server of its own the same machine",
               Columns::kCalls);
  const Process quantd = StartQuantd("beside_quantd"), echo = StartEcho("beside_echo");
  // It computes so slowly that transporting these calls is little of their work.
  const Process slow = StartQuantd("beside_slow", {"--simd=scalar"});
  const auto slow_before = StartBefore("beside_before", {"--simd=scalar"});
  Config small{"Quantize", false, 4, 1};
  small.seconds = 1;
  for (const Config& large : kLarge) {
    const bool heavy = large.report_error;
    if (absl::GetFlag(FLAGS_quick) && &large >= kLarge + 2) break;
    const std::string name =
        absl::StrCat("beside ", large.Name(), heavy ? ", by scalar kernels" : "");
    if (!report.Wanted(name)) continue;
    const Process& server = heavy ? slow : quantd;
    const Side mine = Calling("alone", server, small);
    Case one{name, {mine, Beside("quantd", mine, server, large, "Quantize")}};
    one.pairs = {{"quantd", "alone"}};
    if (heavy) {
      const Side own = Calling("of its own", quantd, small);
      one.sides.push_back(Beside(own.name, own, slow, large, "Quantize"));
      one.pairs.push_back({"quantd", "of its own"});
      if (slow_before != nullptr) {
        const Side older = Calling("before", *slow_before, small);
        one.sides.push_back(Beside(older.name, older, *slow_before, large, "Quantize"));
        one.pairs.push_back({"quantd", "before"});
      }
    } else {
      CallingEcho(echo, quantd, large);  // tells the echo the size of its replies
      Side theirs = CallingEcho(echo, quantd, small);
      one.sides.push_back(Beside("echo", theirs, echo, large, "DynamicQuantize"));
      theirs.name = "echo alone";
      one.sides.push_back(theirs);
      one.pairs.push_back({"quantd", "echo"});
      one.pairs.push_back({"echo", "echo alone"});
    }
    report.Measure(one, Rounds(2, 4));
  }
}

// quantd_bench flood ADDRESS METHOD OPERATION BYTES REPORT IN_FLIGHT CONNECTIONS FILE calls METHOD
// with OPERATION's message, and adds a byte to FILE for each response. It has the lowest priority,
// because it stands for another machine, which would not take CPU from this one.
int RunFlood(const std::vector<std::string>& arguments) {
  Config config;
  if (arguments.size() != 8 || !absl::SimpleAtoi(arguments[3], &config.bytes) ||
      !absl::SimpleAtoi(arguments[5], &config.in_flight) ||
      !absl::SimpleAtoi(arguments[6], &config.connections)) {
    return 2;
  }
  config.operation = arguments[2];
  config.report_error = arguments[4] == "1";
  const int file = open(arguments[7].c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  const std::string message = Request(config);
  if (setpriority(PRIO_PROCESS, 0, 19) != 0) return 2;  // before gRPC has threads
  const grpc::ByteBuffer request = ToBuffer(message);
  Client client(arguments[0], config.connections);
  std::vector<std::thread> threads;
  for (int i = 0; i < config.in_flight; ++i) {
    threads.emplace_back([&, i] {
      for (;;) {
        grpc::ByteBuffer response;
        if (!client.Call(arguments[1], request, response, i).ok()) std::exit(1);
        if (write(file, ".", 1) != 1) std::exit(1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return 0;
}

}  // namespace quantd::bench
