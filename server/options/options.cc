// The flags and what is checked about them. See options.h.
#include "server/options/options.h"

#include <algorithm>
#include <climits>
#include <limits>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "quantd/executor.h"
#include "server/loop/policy.h"
#include "server/memory/container.h"
#include "server/options/access.h"
#include "server/options/flag_parser.h"
#include "server/options/flag_types.h"
#include "server/options/folders.h"
#include "server/trace/endpoint.h"

using quantd::server::Seconds;

ABSL_FLAG(std::vector<std::string>, listen, {"127.0.0.1:50051"},
          "Addresses for gRPC: HOST:PORT (port 0 picks one) or unix:/PATH; repeat the flag or "
          "separate by commas");
ABSL_FLAG(std::string, http_listen, "127.0.0.1:9464",
          "Address for /metrics, /livez and /readyz; empty: none");
ABSL_FLAG(std::string, ready_file, "",
          "File to write once the server serves: JSON with every bound address and the process id");
ABSL_FLAG(int64_t, max_message_bytes, 64 << 20,
          "Largest request and largest answer, up to 2147483647; less where the memory for "
          "receiving is less");
ABSL_FLAG(int64_t, memory_budget_bytes, 0,
          "Memory for requests that are worked on, with their answers; 0: a good half of what the "
          "container's limit leaves (of half the machine, if there is none)");
ABSL_FLAG(int64_t, receive_budget_bytes, 0,
          "Memory for requests that are on their way in; 0: the rest of that");
ABSL_FLAG(int64_t, max_inflight_requests, 1024, "Requests that may be worked on at the same time");
ABSL_FLAG(int64_t, max_queued_requests, 1024,
          "Requests that may wait for memory; one more is refused with UNAVAILABLE");
ABSL_FLAG(Seconds, queue_timeout, Seconds{absl::Seconds(30)},
          "How long a request may wait for memory and for a core; then UNAVAILABLE");
ABSL_FLAG(Seconds, stall_timeout, Seconds{absl::Seconds(5)},
          "How long an answer may stand still, because its client does not read, while others "
          "wait; then its call is cancelled");
ABSL_FLAG(
    int64_t, min_transfer_rate, 64 << 10,
    "Bytes a second at which a request must come and an answer must be read while others wait, "
    "on average over --stall_timeout; lower it for honest clients behind slow links. 0: one "
    "byte in --stall_timeout is enough");
ABSL_FLAG(quantd::server::CompressAnswers, compress_answers,
          {quantd::transport::Encoding::kIdentity},
          "How answers are compressed for clients that accept it: none, gzip or deflate. A call "
          "may ask otherwise: metadata "
          "quantd-compress-answers");
ABSL_FLAG(int64_t, compress_answers_from, 1024, "Smallest answer that is compressed, in bytes");
ABSL_FLAG(int64_t, max_connections, 0,
          "Connections at a time; 0: one for each 512 KiB of the memory limit, 64 to 1024. Beyond, "
          "the peer with the most loses one to a peer with fewer");
ABSL_FLAG(int64_t, max_streams, 100,
          "Calls at a time of one connection (MAX_CONCURRENT_STREAMS of HTTP/2)");
ABSL_FLAG(
    Seconds, keepalive_time, Seconds{absl::Seconds(60)},
    "A connection from which nothing came for so long is sent a ping, and closed when it does "
    "not answer within a third of that. Clients may ping as they like");
ABSL_FLAG(Seconds, max_connection_age, Seconds{absl::ZeroDuration()},
          "After so long a connection is told to go elsewhere, so that clients spread over new "
          "servers; 0: never");
ABSL_FLAG(Seconds, max_connection_age_grace, Seconds{absl::Seconds(30)},
          "How long the calls of such a connection may take to finish");
ABSL_FLAG(int64_t, threads, 0,
          "Cores for the kernels; 0: the CPUs that affinity and the container's quota allow");
ABSL_FLAG(int64_t, queues, 0,
          "Event loops; each connection belongs to one. 0: as many as threads, 64 at most");
ABSL_FLAG(
    std::string, simd, "",
    "Instruction set of the kernels, such as avx512, avx2, neon or scalar; empty: the best one");
ABSL_FLAG(Seconds, lame_duck_seconds, Seconds{absl::ZeroDuration()},
          "On SIGTERM: how long to go on serving and accepting. /readyz says 503 from its begin, "
          "health NOT_SERVING from its half, GOAWAY comes at its end");
ABSL_FLAG(Seconds, drain_seconds, Seconds{absl::Seconds(30)},
          "On SIGTERM, after that: how long requests in flight may take to finish");
ABSL_FLAG(
    quantd::server::LogFormat, log_format, {quantd::log::Format::kAuto},
    "The log on stderr: text, json (a line each), or auto: text, in colours on a terminal and "
    "with priorities for systemd's journal");
ABSL_FLAG(quantd::server::LogLevel, log_level, {quantd::log::Level::kInfo},
          "Lines to write: debug, info, warn or error, and those above");
ABSL_FLAG(
    std::string, otlp_endpoint, "",
    "Collector of spans, by OTLP over HTTP: http[s]://HOST[:PORT][/PATH], with port 4318 (https: "
    "443) and path /v1/traces; empty: that of OTEL_EXPORTER_OTLP_ENDPOINT, or none");
ABSL_FLAG(double, trace_sample_ratio, 0,
          "Calls without a traceparent of which a span goes there, 0 to 1; of the others their "
          "callers decide");

namespace quantd::server {
namespace {

// Every flag of this program, in the order of --help.
constexpr absl::string_view kFlags[] = {"listen",
                                        "http_listen",
                                        "ready_file",
                                        "max_message_bytes",
                                        "memory_budget_bytes",
                                        "receive_budget_bytes",
                                        "max_inflight_requests",
                                        "max_queued_requests",
                                        "queue_timeout",
                                        "stall_timeout",
                                        "min_transfer_rate",
                                        "compress_answers",
                                        "compress_answers_from",
                                        "max_connections",
                                        "max_streams",
                                        "keepalive_time",
                                        "max_connection_age",
                                        "max_connection_age_grace",
                                        "threads",
                                        "queues",
                                        "simd",
                                        "shared_memory_dir",
                                        "parameters_dir",
                                        "tls_cert",
                                        "tls_key",
                                        "tls_client_ca",
                                        "auth_token_file",
                                        "socket_mode",
                                        "lame_duck_seconds",
                                        "drain_seconds",
                                        "log_format",
                                        "log_level",
                                        "otlp_endpoint",
                                        "trace_sample_ratio"};

// `Text`: of a value, for a person.
template <typename Value, typename Text>
absl::Status CheckRange(absl::string_view flag, Value value, Value low, Value high, Text text) {
  if (value >= low && value <= high) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--", flag, " is ", text(value), ", must be ", text(low), " to ", text(high)));
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
  constexpr int64_t kAny = int64_t{1} << 50;
  const auto count = [&status](absl::string_view flag, const absl::Flag<int64_t>& value,
                               int64_t low, int64_t high) {
    const auto text = [](int64_t number) { return absl::StrCat(number); };
    status.Update(CheckRange(flag, absl::GetFlag(value), low, high, text));
  };
  const auto time = [&status](absl::string_view flag, const absl::Flag<Seconds>& value,
                              absl::Duration low) {
    status.Update(CheckRange(flag, absl::GetFlag(value).value, low, 366 * absl::Hours(24),
                             absl::FormatDuration));
  };
  count("max_message_bytes", FLAGS_max_message_bytes, 1024, INT_MAX);
  count("memory_budget_bytes", FLAGS_memory_budget_bytes, 0, kAny);
  count("receive_budget_bytes", FLAGS_receive_budget_bytes, 0, kAny);
  count("max_inflight_requests", FLAGS_max_inflight_requests, 1, 1 << 20);
  count("max_queued_requests", FLAGS_max_queued_requests, 0, 1 << 20);
  time("queue_timeout", FLAGS_queue_timeout, absl::ZeroDuration());
  time("stall_timeout", FLAGS_stall_timeout, absl::Milliseconds(500));
  count("min_transfer_rate", FLAGS_min_transfer_rate, 0, 1 << 30);
  count("compress_answers_from", FLAGS_compress_answers_from, 0, INT_MAX);
  count("max_connections", FLAGS_max_connections, 0, 1 << 20);
  count("max_streams", FLAGS_max_streams, 1, 1 << 20);
  time("keepalive_time", FLAGS_keepalive_time, absl::Seconds(1));
  time("max_connection_age", FLAGS_max_connection_age, absl::ZeroDuration());
  time("max_connection_age_grace", FLAGS_max_connection_age_grace, absl::ZeroDuration());
  count("threads", FLAGS_threads, 0, 1024);
  count("queues", FLAGS_queues, 0, 1024);
  time("lame_duck_seconds", FLAGS_lame_duck_seconds, absl::ZeroDuration());
  time("drain_seconds", FLAGS_drain_seconds, absl::ZeroDuration());
  status.Update(CheckAccess());
  const double ratio = absl::GetFlag(FLAGS_trace_sample_ratio);
  if (!(ratio >= 0 && ratio <= 1)) {  // nor NaN
    status.Update(absl::InvalidArgumentError(
        absl::StrCat("--trace_sample_ratio is ", ratio, ", must be 0 to 1")));
  }
  if (const std::string endpoint = absl::GetFlag(FLAGS_otlp_endpoint); !endpoint.empty()) {
    const absl::Status wrong = trace::ParseEndpoint(endpoint).status();
    if (!wrong.ok()) {
      status.Update(absl::InvalidArgumentError(absl::StrCat("--otlp_endpoint ", wrong.message())));
    }
  }
  return status;
}

Options Effective() {
  Options options;
  options.listen = absl::GetFlag(FLAGS_listen);
  options.http_listen = absl::GetFlag(FLAGS_http_listen);
  options.ready_file = absl::GetFlag(FLAGS_ready_file);
  options.max_inflight_requests = absl::GetFlag(FLAGS_max_inflight_requests);
  options.max_queued_requests = absl::GetFlag(FLAGS_max_queued_requests);
  options.queue_timeout = absl::GetFlag(FLAGS_queue_timeout).value;
  options.stall_timeout = absl::GetFlag(FLAGS_stall_timeout).value;
  options.min_transfer_rate = absl::GetFlag(FLAGS_min_transfer_rate);
  options.compress_answers = absl::GetFlag(FLAGS_compress_answers).value;
  options.compress_answers_from = static_cast<uint64_t>(absl::GetFlag(FLAGS_compress_answers_from));
  options.max_connections = absl::GetFlag(FLAGS_max_connections);
  options.max_streams = absl::GetFlag(FLAGS_max_streams);
  options.keepalive = absl::GetFlag(FLAGS_keepalive_time).value;
  options.max_connection_age = absl::GetFlag(FLAGS_max_connection_age).value;
  options.max_connection_age_grace = absl::GetFlag(FLAGS_max_connection_age_grace).value;
  options.threads = static_cast<int>(absl::GetFlag(FLAGS_threads));
  if (options.threads == 0) options.threads = Executor::DefaultThreads();
  options.queues = static_cast<int>(absl::GetFlag(FLAGS_queues));
  options.queues = loop::PolicyFor(options.threads, options.queues).loops;
  options.simd = absl::GetFlag(FLAGS_simd);
  options.lame_duck = absl::GetFlag(FLAGS_lame_duck_seconds).value;
  options.drain = absl::GetFlag(FLAGS_drain_seconds).value;
  options.log_format = absl::GetFlag(FLAGS_log_format).value;
  options.log_level = absl::GetFlag(FLAGS_log_level).value;
  options.otlp_endpoint = absl::GetFlag(FLAGS_otlp_endpoint);
  options.trace_sample_ratio = absl::GetFlag(FLAGS_trace_sample_ratio);

  const uint64_t limit = memory::LimitBytes();
  if (options.max_connections == 0) {
    options.max_connections = std::clamp<int64_t>(static_cast<int64_t>(limit >> 19), 64, 1024);
  }
  memory::Wanted wanted;
  FillAccess(options, wanted);
  wanted.requests = absl::GetFlag(FLAGS_memory_budget_bytes);
  wanted.receiving = absl::GetFlag(FLAGS_receive_budget_bytes);
  wanted.max_message = absl::GetFlag(FLAGS_max_message_bytes);
  wanted.connections = options.max_connections;
  wanted.calls = options.max_calls();
  wanted.threads = 2 * options.threads + options.queues;
  FillFolders(options, wanted);
  options.memory = memory::Divide(limit, wanted);
  return options;
}

}  // namespace

absl::StatusOr<CommandLine> ParseCommandLine(int argc, const char* const* argv) {
  CommandLine command_line;
  absl::StatusOr<std::string> special = ParseFlags(kFlags, argc, argv);
  if (!special.ok()) return absl::InvalidArgumentError(OneLine(special.status().message()));
  if (*special == "help") command_line.action = Action::kHelp;
  if (*special == "version") command_line.action = Action::kVersion;
  if (!special->empty()) return command_line;
  if (absl::Status status = Check(); !status.ok()) {
    return absl::InvalidArgumentError(OneLine(status.message()));
  }
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

std::string OneLine(absl::string_view text) {
  std::string line;
  for (const char byte : text) {
    if (absl::ascii_iscntrl(static_cast<unsigned char>(byte))) {
      absl::StrAppend(&line, "\\x", absl::Hex(static_cast<unsigned char>(byte), absl::kZeroPad2));
    } else {
      line.push_back(byte);
    }
  }
  return line;
}

log::Fields Describe(const Options& options) {
  const auto seconds = [](absl::Duration time) { return absl::ToDoubleSeconds(time); };
  return {
      {"listen", absl::StrJoin(options.listen, ",")},
      {"http_listen", options.http_listen},
      {"ready_file", options.ready_file},
      {"memory_limit_bytes", options.memory.limit},
      {"max_message_bytes", options.memory.max_message},
      {"memory_budget_bytes", options.memory.requests},
      {"receive_budget_bytes", options.memory.receiving},
      {"region_hole_bytes", options.memory.region_holes},
      {"most_memory_bytes", options.memory.most()},
      {"max_inflight_requests", options.max_inflight_requests},
      {"max_queued_requests", options.max_queued_requests},
      {"queue_timeout", seconds(options.queue_timeout)},
      {"stall_timeout", seconds(options.stall_timeout)},
      {"min_transfer_rate", options.min_transfer_rate},
      {"compress_answers", kCompressions.Name(options.compress_answers)},
      {"compress_answers_from", options.compress_answers_from},
      {"max_connections", options.max_connections},
      {"max_streams", options.max_streams},
      {"keepalive_time", seconds(options.keepalive)},
      {"max_connection_age", seconds(options.max_connection_age)},
      {"max_connection_age_grace", seconds(options.max_connection_age_grace)},
      {"threads", options.threads},
      {"queues", options.queues},
      {"simd", options.simd},
      {"shared_memory_dir", options.shared_memory_dir},
      {"parameters_dir", options.parameters_dir},
      {"tls_cert", options.tls.certificate},
      {"tls_key", options.tls.key},
      {"tls_client_ca", options.tls.client_ca},
      {"auth_token_file", options.auth_token_file},
      {"socket_mode", SocketModeText(options)},
      {"lame_duck_seconds", seconds(options.lame_duck)},
      {"drain_seconds", seconds(options.drain)},
      {"log_format", kFormats.Name(options.log_format)},
      {"log_level", kLevels.Name(options.log_level)},
      {"otlp_endpoint", options.otlp_endpoint},
      {"trace_sample_ratio", options.trace_sample_ratio},
  };
}

}  // namespace quantd::server
