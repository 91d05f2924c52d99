// Decides which calls are traced, and writes their spans to a file: one line of OTLP/JSON each,
// which the OpenTelemetry collector's receiver otlpjsonfile reads. A disk that is slow or full
// costs spans and nothing else.
//
//   auto tracer = Tracer::Open("/var/log/quantd-spans.json", 0.01, "0.1.0");
//   if (const auto context = tracer.Begin(parent)) { ...; tracer.Write(span); }
//   tracer.Close();
#ifndef QUANTD_SERVER_TRACE_TRACER_H_
#define QUANTD_SERVER_TRACE_TRACER_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/log/line_writer.h"
#include "server/trace/context.h"

namespace quantd::trace {

// The span of one call.
struct Span {
  TraceId trace_id = {};
  SpanId span_id = {};
  SpanId parent_id = {};  // zero: none
  std::string name;       // "quantd.v1.QuantizationService/Quantize"
  int64_t begin = 0;      // all times are in nanoseconds since 1970
  int64_t end = 0;
  bool failed = false;
  std::vector<std::pair<absl::string_view, std::variant<std::string, int64_t>>> attributes;
  std::vector<std::pair<absl::string_view, int64_t>> events;  // names and times
};

// Thread-safe, except for Close.
class Tracer {
 public:
  static constexpr size_t kMostWaiting = 4096;

  // Appends to the file, or creates it with mode 0640; "-" is stdout. Of the calls without a
  // parent, `ratio` are traced. `version`: of the server. UNAVAILABLE, in one line: the file cannot
  // be written.
  static absl::StatusOr<std::unique_ptr<Tracer>> Open(const std::string& path, double ratio,
                                                      absl::string_view version);
  ~Tracer();

  // The trace and span ids of a call, if it is to be traced: as its parent decided, if it has one.
  std::optional<Context> Begin(const std::optional<Context>& parent) const;
  // Queues the span's line; if too many wait, the oldest is dropped. Never waits.
  void Write(const Span& span);
  // Writes the waiting spans, for at most `most`.
  void Close(std::chrono::milliseconds most = std::chrono::milliseconds(2000));

  uint64_t written() const { return writer_.written(); }
  uint64_t dropped() const { return writer_.dropped(); }  // too many were waiting
  uint64_t failed() const { return writer_.failed(); }    // could not be written

 private:
  Tracer(int descriptor, double ratio, absl::string_view version);

  const double ratio_;
  const std::string resource_;  // what each line begins with: the process
  log::LineWriter writer_;
  bool closed_ = false;
};

}  // namespace quantd::trace

#endif  // QUANTD_SERVER_TRACE_TRACER_H_
