// The flags and what is checked about them. See options.h.
#include "server/options.h"

#include <algorithm>
#include <climits>
#include <limits>

#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "quantd/executor.h"
#include "server/flag_parser.h"
#include "server/machine.h"

ABSL_FLAG(std::vector<std::string>, listen, {"127.0.0.1:50051"},
          "Addresses for gRPC: HOST:PORT (port 0 picks one) or unix:/PATH; repeat the flag or "
          "separate by commas");
ABSL_FLAG(std::string, http_listen, "127.0.0.1:9464",
          "Address for /metrics, /livez and /readyz; empty: none");
ABSL_FLAG(std::string, ready_file, "",
          "File to write once the server serves: JSON with every bound address and the process id");
ABSL_FLAG(int64_t, max_message_bytes, 64 << 20,
          "Largest request and largest answer, up to 2147483647");
ABSL_FLAG(int64_t, memory_budget_bytes, 0,
          "Memory for the tensors of all requests together; 0: half of what the container or "
          "machine has");
ABSL_FLAG(int64_t, max_inflight_requests, 1024, "Requests that may be worked on at the same time");
ABSL_FLAG(int64_t, max_queued_requests, 1024,
          "Requests that may wait for memory; one more is refused with UNAVAILABLE");
ABSL_FLAG(int64_t, threads, 0,
          "Threads for the kernels; 0: the CPUs that affinity and the container's quota allow");
ABSL_FLAG(int64_t, queues, 0, "Completion queues; 0: one for every four CPUs");
ABSL_FLAG(int64_t, pollers, 1, "Threads that poll each completion queue");
ABSL_FLAG(
    int64_t, inline_bytes, 8 << 20,
    "Requests up to this size (tensors in and out; a report of the error counts eightfold) run "
    "on the polling thread, larger ones and messages over a quarter of it on the kernels' "
    "threads");
ABSL_FLAG(
    std::string, simd, "",
    "Instruction set of the kernels, such as avx512, avx2, neon or scalar; empty: the best one");
ABSL_FLAG(double, lame_duck_seconds, 0,
          "On SIGTERM: how long to go on serving while health says NOT_SERVING");
ABSL_FLAG(double, drain_seconds, 30,
          "On SIGTERM, after that: how long requests in flight may take to finish");
ABSL_FLAG(bool, channelz, false, "Serve channelz, gRPC's own debugging service");

namespace quantd::server {
namespace {

// Every flag of this program, in the order of --help.
constexpr absl::string_view kFlags[] = {"listen",
                                        "http_listen",
                                        "ready_file",
                                        "max_message_bytes",
                                        "memory_budget_bytes",
                                        "max_inflight_requests",
                                        "max_queued_requests",
                                        "threads",
                                        "queues",
                                        "pollers",
                                        "inline_bytes",
                                        "simd",
                                        "lame_duck_seconds",
                                        "drain_seconds",
                                        "channelz"};

absl::Status CheckRange(absl::string_view flag, double value, double low, double high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--", flag, " is ", value, ", must be ", absl::AlphaNum(low), " to ", absl::AlphaNum(high)));
}

// HOST:PORT, [IPv6]:PORT or unix:PATH.
absl::Status CheckAddress(absl::string_view flag, absl::string_view address, bool unix_allowed) {
  if (unix_allowed && absl::ConsumePrefix(&address, "unix:")) {
    if (!address.empty()) return absl::OkStatus();
  } else {
    const size_t colon = address.rfind(':');
    int port = -1;
    if (colon != absl::string_view::npos && colon > 0 &&
        absl::SimpleAtoi(address.substr(colon + 1), &port) && port >= 0 && port <= 65535) {
      return absl::OkStatus();
    }
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--", flag, " is '", address, "', must be HOST:PORT", unix_allowed ? " or unix:/PATH" : ""));
}

absl::Status Check() {
  const std::vector<std::string> listen = absl::GetFlag(FLAGS_listen);
  if (listen.empty()) return absl::InvalidArgumentError("--listen is empty, must be HOST:PORT");
  absl::Status status;
  for (const std::string& address : listen) status.Update(CheckAddress("listen", address, true));
  if (const std::string http = absl::GetFlag(FLAGS_http_listen); !http.empty()) {
    status.Update(CheckAddress("http_listen", http, false));
  }
  constexpr double kAny = 1LL << 50;
  status.Update(
      CheckRange("max_message_bytes", absl::GetFlag(FLAGS_max_message_bytes), 1024, INT_MAX));
  status.Update(
      CheckRange("memory_budget_bytes", absl::GetFlag(FLAGS_memory_budget_bytes), 0, kAny));
  status.Update(
      CheckRange("max_inflight_requests", absl::GetFlag(FLAGS_max_inflight_requests), 1, 1 << 20));
  status.Update(
      CheckRange("max_queued_requests", absl::GetFlag(FLAGS_max_queued_requests), 0, 1 << 20));
  status.Update(CheckRange("threads", absl::GetFlag(FLAGS_threads), 0, 1024));
  status.Update(CheckRange("queues", absl::GetFlag(FLAGS_queues), 0, 64));
  status.Update(CheckRange("pollers", absl::GetFlag(FLAGS_pollers), 1, 64));
  status.Update(CheckRange("inline_bytes", absl::GetFlag(FLAGS_inline_bytes), 0, kAny));
  status.Update(CheckRange("lame_duck_seconds", absl::GetFlag(FLAGS_lame_duck_seconds), 0, 3600));
  status.Update(CheckRange("drain_seconds", absl::GetFlag(FLAGS_drain_seconds), 0, 3600));
  return status;
}

Options Effective() {
  Options options;
  options.listen = absl::GetFlag(FLAGS_listen);
  options.http_listen = absl::GetFlag(FLAGS_http_listen);
  options.ready_file = absl::GetFlag(FLAGS_ready_file);
  options.max_message_bytes = static_cast<int>(absl::GetFlag(FLAGS_max_message_bytes));
  options.memory_budget_bytes = absl::GetFlag(FLAGS_memory_budget_bytes);
  if (options.memory_budget_bytes == 0) options.memory_budget_bytes = AvailableMemoryBytes() / 2;
  options.max_inflight_requests = absl::GetFlag(FLAGS_max_inflight_requests);
  options.max_queued_requests = absl::GetFlag(FLAGS_max_queued_requests);
  options.threads = static_cast<int>(absl::GetFlag(FLAGS_threads));
  if (options.threads == 0) options.threads = Executor::DefaultThreads();
  options.queues = static_cast<int>(absl::GetFlag(FLAGS_queues));
  if (options.queues == 0) options.queues = std::max(1, Executor::DefaultThreads() / 4);
  options.pollers = static_cast<int>(absl::GetFlag(FLAGS_pollers));
  options.inline_bytes = absl::GetFlag(FLAGS_inline_bytes);
  options.simd = absl::GetFlag(FLAGS_simd);
  options.lame_duck = absl::Seconds(absl::GetFlag(FLAGS_lame_duck_seconds));
  options.drain = absl::Seconds(absl::GetFlag(FLAGS_drain_seconds));
  options.channelz = absl::GetFlag(FLAGS_channelz);
  return options;
}

}  // namespace

absl::StatusOr<CommandLine> ParseCommandLine(int argc, const char* const* argv) {
  CommandLine command_line;
  absl::StatusOr<std::string> special = ParseFlags(kFlags, argc, argv);
  if (!special.ok()) return special.status();
  if (*special == "help") command_line.request = Request::kHelp;
  if (*special == "version") command_line.request = Request::kVersion;
  if (!special->empty()) return command_line;
  if (absl::Status status = Check(); !status.ok()) return status;
  command_line.options = Effective();
  return command_line;
}

std::string HelpText() {
  std::string text =
      "quantd: quantizes tensors for any gRPC client.\n\n"
      "Each flag --some_name can also be given as QUANTD_SOME_NAME in the environment; the flag "
      "wins.\n\n";
  for (const absl::string_view name : kFlags) {
    const absl::CommandLineFlag* flag = absl::FindCommandLineFlag(name);
    absl::StrAppend(&text, "  --", name, "  (", flag->DefaultValue(), ")\n      ", flag->Help(),
                    "\n");
  }
  absl::StrAppend(&text,
                  "  --version\n      Shows the version.\n  --help\n      Shows this page.\n");
  return text;
}

std::string Describe(const Options& options) {
  return absl::StrCat(
      "listen=", absl::StrJoin(options.listen, ","), " http_listen=", options.http_listen,
      " ready_file=", options.ready_file, " max_message_bytes=", options.max_message_bytes,
      " memory_budget_bytes=", options.memory_budget_bytes,
      " max_inflight_requests=", options.max_inflight_requests,
      " max_queued_requests=", options.max_queued_requests, " threads=", options.threads,
      " queues=", options.queues, " pollers=", options.pollers,
      " inline_bytes=", options.inline_bytes, " simd=", options.simd,
      " lame_duck_seconds=", absl::ToDoubleSeconds(options.lame_duck),
      " drain_seconds=", absl::ToDoubleSeconds(options.drain), " channelz=", options.channelz);
}

}  // namespace quantd::server
