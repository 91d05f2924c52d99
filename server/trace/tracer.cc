// A line is an ExportTraceServiceRequest of OTLP 1.x in its JSON encoding: ids in hexadecimal,
// integers of 64 bits as text, enums as numbers.
#include "server/trace/tracer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "absl/random/random.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/log/format.h"

namespace quantd::trace {
namespace {

using log::JsonText;

constexpr int kServer = 2;  // SpanKind
constexpr int kError = 2;   // StatusCode

template <size_t n>
std::array<uint8_t, n> RandomId() {
  thread_local absl::BitGen random;
  std::array<uint8_t, n> id{};
  static_assert(n % sizeof(uint64_t) == 0);
  while (id == std::array<uint8_t, n>{}) {  // zero is not valid
    for (size_t i = 0; i < n; i += sizeof(uint64_t)) {
      const auto bits = absl::Uniform<uint64_t>(random);
      std::memcpy(&id[i], &bits, sizeof(bits));
    }
  }
  return id;
}

std::string Attribute(absl::string_view key, const std::variant<std::string, int64_t>& value) {
  const auto* const text = std::get_if<std::string>(&value);
  const std::string any = text != nullptr
                              ? absl::StrCat("\"stringValue\":", JsonText(*text))
                              : absl::StrCat("\"intValue\":\"", std::get<int64_t>(value), "\"");
  return absl::StrCat("{\"key\":", JsonText(key), ",\"value\":{", any, "}}");
}

std::string SpanText(const Span& span) {
  std::string out = absl::StrCat("{\"traceId\":\"", Hexadecimal(span.trace_id), "\",\"spanId\":\"",
                                 Hexadecimal(span.span_id), "\"");
  if (span.parent_id != SpanId{}) {
    absl::StrAppend(&out, ",\"parentSpanId\":\"", Hexadecimal(span.parent_id), "\"");
  }
  absl::StrAppend(&out, ",\"name\":", JsonText(span.name), ",\"kind\":", kServer,
                  ",\"startTimeUnixNano\":\"", span.begin, "\",\"endTimeUnixNano\":\"", span.end,
                  "\",\"attributes\":[",
                  absl::StrJoin(span.attributes, ",",
                                [](std::string* to, const auto& pair) {
                                  to->append(Attribute(pair.first, pair.second));
                                }),
                  "],\"events\":[",
                  absl::StrJoin(span.events, ",",
                                [](std::string* to, const auto& event) {
                                  absl::StrAppend(to, "{\"timeUnixNano\":\"", event.second,
                                                  "\",\"name\":", JsonText(event.first), "}");
                                }),
                  "]");
  if (span.failed) absl::StrAppend(&out, ",\"status\":{\"code\":", kError, "}");
  return out + "}";
}

std::string ResourceText(absl::string_view version) {
  char host[256] = {};
  if (gethostname(host, sizeof(host) - 1) != 0) host[0] = '\0';
  return absl::StrCat(
      "{\"resourceSpans\":[{\"resource\":{\"attributes\":[",
      Attribute("service.name", std::string("quantd")), ",",
      Attribute("service.version", std::string(version)), ",",
      Attribute("host.name", std::string(host)), ",", Attribute("process.pid", int64_t{getpid()}),
      "]},\"scopeSpans\":[{\"scope\":{\"name\":\"quantd\",\"version\":", JsonText(version),
      "},\"spans\":[");
}

}  // namespace

absl::StatusOr<std::unique_ptr<Tracer>> Tracer::Open(const std::string& path, double ratio,
                                                     absl::string_view version) {
  // O_NONBLOCK: a pipe without a reader is an error, instead of a wait for one.
  const int descriptor =
      path == "-"
          ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)
          : open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0640);
  if (descriptor < 0) {
    return absl::UnavailableError(absl::StrCat("cannot write --trace_file '", path,
                                               "': ", std::generic_category().message(errno)));
  }
  return std::unique_ptr<Tracer>(new Tracer(descriptor, ratio, version));
}

Tracer::Tracer(int descriptor, double ratio, absl::string_view version)
    : ratio_(ratio),
      resource_(ResourceText(version)),
      // Closed when the thread lets go of it.
      writer_(
          descriptor, kMostWaiting, nullptr,
          std::shared_ptr<const void>(nullptr, [descriptor](const void*) { close(descriptor); })) {}

Tracer::~Tracer() { Close(std::chrono::milliseconds(0)); }

std::optional<Context> Tracer::Begin(const std::optional<Context>& parent) const {
  thread_local absl::BitGen random;
  const bool sampled = parent.has_value() ? parent->sampled : absl::Bernoulli(random, ratio_);
  if (!sampled) return std::nullopt;
  return Context{parent.has_value() ? parent->trace_id : RandomId<16>(), RandomId<8>(), true};
}

void Tracer::Write(const Span& span) {
  writer_.Write([&] { return absl::StrCat(resource_, SpanText(span), "]}]}]}\n"); });
}

void Tracer::Close(std::chrono::milliseconds most) {
  if (!std::exchange(closed_, true)) writer_.Close(most);
}

}  // namespace quantd::trace
