// The flags, and how the command line and the environment set them. See options.h.
#include "server/options/options.h"

#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "quantd/executor.h"
#include "server/net/listen.h"
#include "server/scheduling/policy.h"

namespace quantd::server {
namespace {

// A flag of the program.
struct Flag {
  const char* name;
  std::string by_default;
  const char* help;
  // Sets the option. Returns what is wrong with the text; empty: nothing.
  std::function<std::string(const std::string& text)> take;
  // The option's effective value, for the log.
  std::function<log::Field()> show;
  bool is_list = false;  // separated by commas; repeated flags are appended
};

using Rule = std::function<std::string(const std::string& text)>;

Flag Text(const char* name, std::string& value, const char* by_default, const char* help,
          const Rule& check = nullptr) {
  const auto take = [&value, check](const std::string& text) {
    value = text;
    return check != nullptr && !text.empty() ? check(text) : std::string();
  };
  return {name, by_default, help, take, [name, &value] { return log::Field(name, value); }};
}

template <typename Number>
Flag Count(const char* name, Number& value, int64_t by_default, int64_t low, int64_t high,
           const char* help) {
  const auto take = [&value, low, high](const std::string& text) {
    int64_t number = 0;
    if (!absl::SimpleAtoi(text, &number) || number < low || number > high) {
      return absl::StrCat("must be a whole number, ", low, " to ", high);
    }
    value = static_cast<Number>(number);
    return std::string();
  };
  return {name, absl::StrCat(by_default), help, take,
          [name, &value] { return log::Field(name, value); }};
}

// Bytes, or a number with a unit: 64MiB, 128Mi (both of 1024), 1GB or 1G (of 1000). nullopt: it is
// neither, or more than 2^63.
std::optional<int64_t> ParseSize(absl::string_view text) {
  constexpr absl::string_view kUnits = "KMGT";
  double unit = 1;
  absl::ConsumeSuffix(&text, "B");
  const bool binary = absl::ConsumeSuffix(&text, "i");
  const char last = text.empty() ? '0' : text.back();
  if (const size_t power = kUnits.find(last == 'k' ? 'K' : last); power != kUnits.npos) {
    unit = std::pow(binary ? 1024 : 1000, static_cast<double>(power + 1));
    text.remove_suffix(1);
  } else if (binary) {
    return std::nullopt;
  }
  text = absl::StripAsciiWhitespace(text);
  int64_t whole = 0;
  if (unit == 1 && absl::SimpleAtoi(text, &whole)) return whole;
  double number = 0;
  if (unit == 1 || text.find_first_not_of("0123456789.") != text.npos ||
      !absl::SimpleAtod(text, &number) || !(number * unit < 0x1p63)) {
    return std::nullopt;
  }
  return static_cast<int64_t>(number * unit);
}

// A size in bytes.
template <typename Number>
Flag Size(const char* name, Number& value, const char* by_default, int64_t low, int64_t high,
          const char* help) {
  Flag flag = Count(name, value, 0, low, high, help);
  flag.by_default = by_default;
  flag.take = [&value, low, high](const std::string& text) {
    const std::optional<int64_t> size = ParseSize(text);
    if (!size.has_value() || *size < low || *size > high) {
      return absl::StrCat("must be ", low, " to ", high,
                          " bytes, or a number with a unit, such as ", "64MiB, 128Mi or 1GB");
    }
    value = static_cast<Number>(*size);
    return std::string();
  };
  return flag;
}

// A time in seconds, or a number with a unit such as 500ms or 2m.
Flag Time(const char* name, absl::Duration& value, int by_default, absl::Duration low,
          const char* help) {
  const absl::Duration high = 366 * absl::Hours(24);
  const auto take = [&value, low, high](const std::string& text) {
    double number = 0;
    if (absl::SimpleAtod(text, &number) && std::isfinite(number)) {
      value = absl::Seconds(number);
    } else if (!absl::ParseDuration(text, &value)) {
      return std::string("must be a number of seconds, or a number with a unit: ms, s, m, h");
    }
    if (value >= low && value <= high) return std::string();
    return absl::StrCat("must be ", absl::FormatDuration(low), " to ", absl::FormatDuration(high));
  };
  return {name, absl::StrCat(by_default), help, take,
          [name, &value] { return log::Field(name, absl::ToDoubleSeconds(value)); }};
}

template <typename Value>
using Words = std::vector<std::pair<absl::string_view, Value>>;

// A choice between a few words.
template <typename Value>
Flag Word(const char* name, Value& value, const char* by_default, const Words<Value>& words,
          const char* help) {
  const auto take = [&value, words](const std::string& text) {
    for (const auto& [word, meaning] : words) {
      if (text != word) continue;
      value = meaning;
      return std::string();
    }
    return absl::StrCat("must be one of ",
                        absl::StrJoin(words, ", ", [](std::string* out, const auto& pair) {
                          absl::StrAppend(out, pair.first);
                        }));
  };
  const auto show = [name, &value, words] {
    const auto has_value = [&value](const auto& pair) { return pair.second == value; };
    return log::Field(name, std::find_if(words.begin(), words.end(), has_value)->first);
  };
  return {name, by_default, help, take, show};
}

// HOST:PORT, [IPv6]:PORT, or unix:PATH where that is allowed.
std::string CheckAddress(absl::string_view address, bool unix_allowed) {
  const bool right = unix_allowed && absl::ConsumePrefix(&address, "unix:")
                         ? !address.empty()
                         : net::SplitAddress(address).has_value();
  if (right) return "";
  return absl::StrCat("must be HOST:PORT", unix_allowed ? " or unix:/PATH" : "");
}

Flag Listen(std::vector<std::string>& value) {
  const auto take = [&value](const std::string& text) {
    value = absl::StrSplit(text, ',');
    for (const std::string& address : value) {
      if (std::string wrong = CheckAddress(address, true); !wrong.empty()) return wrong;
    }
    return std::string();
  };
  return {"listen",
          "127.0.0.1:50051",
          "Addresses for gRPC: HOST:PORT (port 0 picks one) or unix:/PATH; repeat the flag, or "
          "separate addresses by commas",
          take,
          [&value] { return log::Field("listen", absl::StrJoin(value, ",")); },
          true};
}

// Permissions in octal. The server's own user must have access.
Flag SocketMode(uint32_t& value) {
  const auto take = [&value](const std::string& text) {
    value = 0;
    const bool octal =
        !text.empty() && text.size() <= 5 && std::all_of(text.begin(), text.end(), [&](char c) {
          value = 8 * value + static_cast<uint32_t>(c - '0');
          return c >= '0' && c <= '7';
        });
    return octal && value >= 0600 && value <= 0777 ? "" : "must be octal, 0600 to 0777";
  };
  return {"socket_mode", "0660",
          "Permissions of Unix sockets, octal: users who may write to a socket may connect", take,
          [&value] { return log::Field("socket_mode", absl::StrFormat("0%o", value)); }};
}

Flag SampleRatio(double& value) {
  const auto take = [&value](const std::string& text) {
    const bool good = absl::SimpleAtod(text, &value) && value >= 0 && value <= 1;  // not NaN
    return good ? "" : "must be a number, 0 to 1";
  };
  return {
      "trace_sample_ratio", "0",
      "Fraction (0 to 1) of the calls without a traceparent header that are traced; a call with "
      "one follows its caller's decision",
      take, [&value] { return log::Field("trace_sample_ratio", value); }};
}

Flag Showing(Flag flag, const uint64_t& effective) {
  flag.show = [name = flag.name, &effective] { return log::Field(name, effective); };
  return flag;
}

// All flags, in the order of --help: name, default, help, accepted values, and the option that they
// set and show. `o` and `wanted` must outlive the flags.
std::vector<Flag> Flags(Options& o, memory::Wanted& wanted) {
  constexpr int64_t kAny = int64_t{1} << 50;
  const absl::Duration none = absl::ZeroDuration();
  const auto http = [](const std::string& text) { return CheckAddress(text, false); };
  return {
      Listen(o.listen),
      Text("http_listen", o.http_listen, "127.0.0.1:9464",
           "Address for the status page, /metrics, /livez and /readyz; empty: none", http),
      Word("status_page", o.status_page, "on",
           Words<bool>{{"on", true}, {"off", false}, {"true", true}, {"false", false}},
           "Whether the HTTP port shows the status page at / and /status.json: on or off"),
      SocketMode(o.socket_mode),
      Text("ready_file", o.ready_file, "",
           "File to write when the server is ready: JSON with every bound address and the process "
           "id"),
      Showing(Size("max_message_bytes", wanted.max_message, "64MiB", 1024, INT_MAX,
                   "Largest request and largest response, below 2GiB; lower if the memory "
                   "for receiving is smaller"),
              o.memory.max_message),
      Showing(Size("memory_budget_bytes", wanted.requests, "0", 0, kAny,
                   "Memory for requests in progress and their responses; 0: about half of what "
                   "the container's limit leaves (or half of the machine, if there is no limit)"),
              o.memory.requests),
      Showing(
          Size("receive_budget_bytes", wanted.receiving, "0", 0, kAny,
               "Memory for requests that are being received, at least 128KiB; 0: the rest of that "
               "memory"),
          o.memory.receiving),
      Count("max_inflight_requests", o.max_inflight_requests, 1024, 1, 1 << 20,
            "Requests that may be in progress at the same time, without those whose response is "
            "computed"),
      Count("max_queued_requests", o.max_queued_requests, 1024, 0, 1 << 20,
            "Requests that may wait for memory; any further request fails with UNAVAILABLE"),
      Time("queue_timeout", o.queue_timeout, 30, none,
           "How long a request may wait for memory and for a core; then it fails with UNAVAILABLE"),
      Time("stall_timeout", o.stall_timeout, 5, absl::Milliseconds(500),
           "How long a request or a response may make no progress while others wait; then its "
           "call is cancelled"),
      Size("min_transfer_rate", o.min_transfer_rate, "64KiB", 0, 1 << 30,
           "Bytes per second at which a request must arrive and a response must be read while "
           "others wait, averaged over --stall_timeout; lower it for honest clients on slow "
           "links. 0: one byte per --stall_timeout is enough"),
      Word("compress_answers", o.compress_answers, "none",
           Words<transport::Encoding>(transport::kCompressions.begin(),
                                      transport::kCompressions.end()),
           "How responses are compressed for clients that accept it: none, gzip or deflate. A call "
           "may choose another way with the metadata quantd-compress-answers"),
      Size("compress_answers_from", o.compress_answers_from, "1KiB", 0, INT_MAX,
           "Size in bytes of the smallest response that is compressed"),
      Count("max_connections", o.max_connections, 0, 0, 1 << 20,
            "Largest number of connections; 0: one per 512 KiB of the memory limit, 64 to 1024. "
            "Beyond that, the peer with the most connections loses one to a peer with fewer"),
      Count("max_streams", o.max_streams, 100, 1, 1 << 20,
            "Concurrent calls per connection (MAX_CONCURRENT_STREAMS of HTTP/2)"),
      Time("keepalive_time", o.keepalive, 60, absl::Seconds(1),
           "A connection that sent nothing for this long gets a ping, and is closed if it does not "
           "answer within a third of this time. Clients may ping at any rate"),
      Time("max_connection_age", o.max_connection_age, 0, none,
           "Connections of this age are asked to reconnect, so that clients spread over new "
           "servers; 0: never"),
      Time("max_connection_age_grace", o.max_connection_age_grace, 30, none,
           "How long the calls of such a connection may take to finish"),
      Count("threads", o.threads, 0, 0, 1024,
            "Cores for the kernels; 0: the CPUs that affinity and the container's quota allow"),
      Count("event_loops", o.event_loops, 0, 0, 1024,
            "Event loops; each connection belongs to one. 0: as many as --threads, at most 64"),
      Count("busy_poll_us", o.busy_poll_us, 20, 0, 1000,
            "Microseconds that an event loop polls before it sleeps, while that pays; 0: never"),
      Text("simd", o.simd, "",
           "Instruction set of the kernels, such as avx512, avx2, neon or scalar; empty: the best "
           "one"),
      Text("shared_memory_dir", o.shared_memory_dir, "",
           "Directory on tmpfs whose files clients on this node may name as tensors "
           "(SharedMemoryReference); empty: none"),
      Text("tls_cert", o.tls_cert, "",
           "PEM file with the server's certificate and its chain: TCP addresses, of gRPC and HTTP, "
           "then accept TLS only; Unix sockets stay plain. Read again when it changes, and on "
           "SIGHUP; empty: no TLS"),
      Text("tls_key", o.tls_key, "", "PEM file with the key of --tls_cert, without a password"),
      Text("tls_client_ca", o.tls_client_ca, "",
           "PEM file with authorities: a TLS client needs a certificate from one of them, except "
           "for /livez and /readyz; empty: none"),
      Text("auth_token_file", o.auth_token_file, "",
           "File with tokens, one per line: every call except health checks, and /metrics, needs "
           "'authorization: Bearer TOKEN' with one of them. Read again when it changes, and on "
           "SIGHUP; empty: none"),
      Time("lame_duck_seconds", o.lame_duck, 0, none,
           "How long to keep serving after SIGTERM. /readyz returns 503 from the start of this "
           "period, the health service reports NOT_SERVING from its midpoint, and GOAWAY is sent "
           "at its end"),
      Time("drain_seconds", o.drain, 30, none,
           "How long requests in progress may then take to finish"),
      Word("log_format", o.log_format, "auto",
           Words<log::Format>{{"auto", log::Format::kAuto},
                              {"text", log::Format::kText},
                              {"json", log::Format::kJson}},
           "Format of the log on stderr: text, json (one object per line), or auto: text, with "
           "colours on a terminal and with priorities for systemd's journal"),
      Word("log_level", o.log_level, "info",
           Words<log::Level>{{"debug", log::Level::kDebug},
                             {"info", log::Level::kInfo},
                             {"warn", log::Level::kWarn},
                             {"error", log::Level::kError}},
           "Lowest level that is logged: debug, info, warn or error"),
      Text("trace_file", o.trace_file, "",
           "File to which spans of traced calls are appended, one line of OTLP/JSON each; -: "
           "stdout; empty: no calls are traced"),
      SampleRatio(o.trace_sample_ratio),
  };
}

constexpr absl::string_view kPrefix = "QUANTD_";
// Where a group of flags begins in --help.
constexpr std::pair<absl::string_view, absl::string_view> kGroups[] = {
    {"listen", "Addresses"},
    {"max_message_bytes", "Limits"},
    {"stall_timeout", "Slow clients"},
    {"compress_answers", "Responses"},
    {"max_connections", "Connections"},
    {"threads", "Cores"},
    {"shared_memory_dir", "Shared memory"},
    {"tls_cert", "TLS and tokens"},
    {"lame_duck_seconds", "Shutdown"},
    {"log_format", "Log and traces"}};
constexpr size_t kHelpWidth = 80;

std::string Variable(absl::string_view flag) {
  return absl::StrCat(kPrefix, absl::AsciiStrToUpper(flag));
}

// How many characters to add, remove or replace to get from one word to the other.
size_t Distance(absl::string_view from, absl::string_view to) {
  std::vector<size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 0; i < from.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < to.size(); ++j) {
      const size_t replaced = diagonal + (from[i] == to[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, row[j + 1] + 1, replaced});
    }
  }
  return row.back();
}

// The name of a flag that is most like a misspelt one; empty: none is.
std::string MostLike(absl::string_view name, const std::vector<Flag>& flags) {
  std::vector<std::string> names = {"help", "version", "check"};
  for (const Flag& flag : flags) names.emplace_back(flag.name);
  const auto closest = std::min_element(
      names.begin(), names.end(),
      [&](const auto& a, const auto& b) { return Distance(name, a) < Distance(name, b); });
  return Distance(name, *closest) <= 1 + name.size() / 4 ? *closest : "";
}

// Reads "--name=value" and "--name value". given[i] becomes what flags[i] was given, in order. Help
// and version are shown whatever else is wrong.
absl::Status ReadWords(const std::vector<Flag>& flags, int argc, const char* const* argv,
                       std::vector<std::vector<std::string>>& given, CommandLine& line) {
  absl::Status status;
  for (int i = 1; i < argc; ++i) {
    const absl::string_view word = argv[i];
    const size_t equals = std::min(word.find('='), word.size());
    std::string name(word.substr(0, equals));
    // --some-name is --some_name.
    if (absl::StartsWith(name, "--")) std::replace(name.begin() + 2, name.end(), '-', '_');
    if (word == "--check") {
      line.action = Action::kCheck;
      continue;
    }
    if (name == "--help" || name == "-h" || name == "--version") {
      line.action = name == "--version" ? Action::kVersion : Action::kHelp;
      return absl::OkStatus();
    }
    const auto flag = std::find_if(flags.begin(), flags.end(), [&name](const Flag& f) {
      return name == absl::StrCat("--", f.name);
    });
    if (flag == flags.end()) {
      const std::string like = absl::StartsWith(name, "--") ? MostLike(name.substr(2), flags) : "";
      status.Update(absl::InvalidArgumentError(
          absl::StrCat("unexpected argument '", name, "'; ",
                       like.empty() ? "see --help" : absl::StrCat("did you mean --", like, "?"))));
    } else if (equals < word.size()) {
      given[flag - flags.begin()].emplace_back(word.substr(equals + 1));
    } else if (i + 1 < argc && !absl::StartsWith(argv[i + 1], "--")) {
      given[flag - flags.begin()].emplace_back(argv[++i]);
    } else {
      status.Update(absl::InvalidArgumentError(absl::StrCat(name, " has no value")));
    }
  }
  return status;
}

// Kubernetes sets variables NAME_SERVICE_... and NAME_PORT... for each Service NAME in every
// container.
bool IsOfKubernetes(absl::string_view variable) {
  for (const char* const part : {"_SERVICE_", "_PORT"}) {
    for (size_t at = variable.find(part); at != absl::string_view::npos;
         at = variable.find(part, at + 1)) {
      const std::string host = absl::StrCat(variable.substr(0, at), "_SERVICE_HOST");
      if (std::getenv(host.c_str()) != nullptr) return true;
    }
  }
  return false;
}

// Notes every variable QUANTD_... that is not read, so that its author learns that it has no
// effect.
void NoteUnknownVariables(const std::vector<Flag>& flags, std::vector<std::string>& notes) {
  std::vector<std::string> unknown;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const absl::string_view assignment = *entry;
    const std::string name(assignment.substr(0, assignment.find('=')));
    if (!absl::StartsWith(name, kPrefix) || IsOfKubernetes(name)) continue;
    const auto is_of = [&name](const Flag& flag) { return Variable(flag.name) == name; };
    if (std::any_of(flags.begin(), flags.end(), is_of)) continue;
    const std::string like = MostLike(absl::AsciiStrToLower(name.substr(kPrefix.size())), flags);
    unknown.push_back(like.empty() ? name
                                   : absl::StrCat(name, " (did you mean ", Variable(like), "?)"));
  }
  if (unknown.empty()) return;
  notes.push_back(absl::StrCat("ignored variables in the environment that are not flags: ",
                               absl::StrJoin(unknown, ", ")));
}

absl::Status Set(const Flag& flag, absl::string_view source, const std::string& text) {
  const std::string wrong = flag.take(text);
  if (wrong.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("invalid value '", text, "' for ", source, ": ", wrong));
}

absl::Status Parse(const std::vector<Flag>& flags, int argc, const char* const* argv,
                   CommandLine& line) {
  std::vector<std::vector<std::string>> given(flags.size());
  absl::Status status = ReadWords(flags, argc, argv, given, line);
  if (!status.ok() || line.action == Action::kHelp || line.action == Action::kVersion)
    return status;
  for (size_t i = 0; i < flags.size(); ++i) {
    const Flag& flag = flags[i];
    const char* const value = std::getenv(Variable(flag.name).c_str());
    status = Set(flag, "the default", flag.by_default);
    const std::string text = given[i].empty() ? (value == nullptr ? flag.by_default : value)
                             : flag.is_list   ? absl::StrJoin(given[i], ",")
                                              : given[i].back();
    if (!given[i].empty()) {
      status = Set(flag, absl::StrCat("--", flag.name), text);
    } else if (value != nullptr) {
      status = Set(flag, Variable(flag.name), text);
    }
    if (text != flag.by_default) line.changed.push_back(absl::StrCat("--", flag.name, "=", text));
    if (!status.ok()) return status;
  }
  NoteUnknownVariables(flags, line.notes);
  return absl::OkStatus();
}

// Checks that depend on several flags, and values that are apart.
absl::Status Check(const Options& options, const memory::Wanted& wanted) {
  if (wanted.receiving != 0 && wanted.receiving < memory::kLeastReceiving) {
    return absl::InvalidArgumentError(
        absl::StrCat("--receive_budget_bytes is ", wanted.receiving, ", must be 0 or at least ",
                     memory::kLeastReceiving, ": messages come in pieces of half of that"));
  }
  if (options.tls_cert.empty() != options.tls_key.empty()) {
    return absl::InvalidArgumentError(
        options.tls_cert.empty() ? "--tls_key is given, --tls_cert is not: TLS needs both"
                                 : "--tls_cert is given, --tls_key is not: TLS needs both");
  }
  if (options.tls_cert.empty() && !options.tls_client_ca.empty()) {
    return absl::InvalidArgumentError(
        "--tls_client_ca is given, --tls_cert and --tls_key are not: clients show certificates in "
        "TLS only");
  }
  return absl::OkStatus();
}

// Fills in values that were 0 for "find out", and divides the memory.
void Complete(Options& options, memory::Wanted& wanted) {
  if (options.threads == 0) options.threads = Executor::DefaultThreads();
  const scheduling::Policy policy = options.policy();
  options.event_loops = policy.loops;
  const uint64_t limit = memory::LimitBytes();
  if (options.max_connections == 0) {
    options.max_connections = std::clamp<int64_t>(static_cast<int64_t>(limit >> 19), 64, 1024);
  }
  wanted.connections = options.max_connections;
  wanted.calls = options.max_calls();
  wanted.threads = policy.threads();
  wanted.tls = !options.tls_cert.empty();
  wanted.shared_memory = !options.shared_memory_dir.empty();
  options.memory = memory::Divide(limit, wanted);
}

}  // namespace

absl::StatusOr<CommandLine> ParseCommandLine(int argc, const char* const* argv) {
  CommandLine line;
  memory::Wanted wanted;
  absl::Status status = Parse(Flags(line.options, wanted), argc, argv, line);
  const bool complete = line.action == Action::kServe || line.action == Action::kCheck;
  if (status.ok() && complete) status = Check(line.options, wanted);
  if (!status.ok()) return absl::InvalidArgumentError(OneLine(status.message()));
  if (complete) Complete(line.options, wanted);
  return line;
}

std::string HelpText(absl::string_view version) {
  std::string text = absl::StrCat(
      "quantd ", version,
      ": quantizes tensors for any gRPC client.\n\n"
      "Usage: quantd [--name=value]...\n\n"
      "A flag --some_name can also be given as QUANTD_SOME_NAME in the environment; the\n"
      "flag wins. Sizes take units (64MiB, 1GB), times too (500ms, 2m).\n");
  Options options;
  memory::Wanted wanted;
  for (const Flag& flag : Flags(options, wanted)) {
    for (const auto& [first, group] : kGroups) {
      if (first == flag.name) absl::StrAppend(&text, "\n", group, "\n");
    }
    absl::StrAppend(&text, "  --", flag.name, "  (", flag.by_default, ")\n");
    std::string line = "     ";
    for (const absl::string_view word : absl::StrSplit(flag.help, ' ')) {
      if (line.size() + 1 + word.size() > kHelpWidth) {
        absl::StrAppend(&text, line, "\n");
        line = "     ";
      }
      absl::StrAppend(&line, " ", word);
    }
    absl::StrAppend(&text, line, "\n");
  }
  absl::StrAppend(
      &text,
      "\nOther\n  --check\n      Checks the flags and the files that they name, and ends.\n"
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
  Options copy = options;
  memory::Wanted wanted;
  log::Fields fields = {{"memory_limit_bytes", options.memory.limit},
                        {"region_hole_bytes", options.memory.region_holes},
                        {"most_memory_bytes", options.memory.most()}};
  for (const Flag& flag : Flags(copy, wanted)) fields.push_back(flag.show());
  return fields;
}

}  // namespace quantd::server
