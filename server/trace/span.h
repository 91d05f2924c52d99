// The span of one call.
#ifndef QUANTD_SERVER_TRACE_SPAN_H_
#define QUANTD_SERVER_TRACE_SPAN_H_

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/trace/context.h"

namespace quantd::trace {

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

using Attribute = std::pair<std::string, std::variant<std::string, int64_t>>;

// The exporting process.
struct Resource {
  std::string version;                // of the instrumentation, which is the server
  std::vector<Attribute> attributes;  // such as service.name
};

// The body of a POST to /v1/traces: an ExportTraceServiceRequest of OTLP 1.x.
std::string EncodeOtlp(const Resource& resource, const std::vector<Span>& spans);

}  // namespace quantd::trace

#endif  // QUANTD_SERVER_TRACE_SPAN_H_
