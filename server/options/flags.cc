#include "server/options/flags.h"

#include <algorithm>
#include <climits>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "server/net/listen.h"
#include "server/transport/encoding.h"

namespace quantd::server {
namespace {

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

}  // namespace

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
           "How long a response may make no progress because its client does not read, while "
           "others wait; then its call is cancelled"),
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

}  // namespace quantd::server
