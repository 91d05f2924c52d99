// The messages are written by hand, like those of google.rpc: only these few fields of
// OpenTelemetry's protos are needed, and their numbers are fixed.
//
//   ExportTraceServiceRequest { repeated ResourceSpans resource_spans = 1; }
//   ResourceSpans { Resource resource = 1; repeated ScopeSpans scope_spans = 2; }
//   Resource      { repeated KeyValue attributes = 1; }
//   ScopeSpans    { InstrumentationScope scope = 1; repeated Span spans = 2; }
//   InstrumentationScope { string name = 1; string version = 2; }
//   Span          { bytes trace_id = 1; bytes span_id = 2; bytes parent_span_id = 4;
//                   string name = 5; SpanKind kind = 6; fixed64 start_time_unix_nano = 7;
//                   fixed64 end_time_unix_nano = 8; repeated KeyValue attributes = 9;
//                   repeated Event events = 11; Status status = 15; }
//   Event         { fixed64 time_unix_nano = 1; string name = 2; }
//   Status        { StatusCode code = 3; }
//   KeyValue      { string key = 1; AnyValue value = 2; }
//   AnyValue      { oneof { string string_value = 1; int64 int_value = 3; } }
#include <algorithm>

#include "server/trace/span.h"
#include "server/wire/writer.h"

namespace quantd::trace {
namespace {

using wire::AppendBytesField;
using wire::AppendFixed64Field;
using wire::AppendVarintField;

constexpr uint64_t kServer = 2;  // SpanKind
constexpr uint64_t kError = 2;   // StatusCode

template <size_t n>
absl::string_view Bytes(const std::array<uint8_t, n>& id) {
  return {reinterpret_cast<const char*>(id.data()), n};
}

std::string KeyValue(absl::string_view key, const std::variant<std::string, int64_t>& value) {
  std::string any, pair;
  if (const auto* text = std::get_if<std::string>(&value)) {
    AppendBytesField(1, *text, any);
  } else {
    AppendVarintField(3, static_cast<uint64_t>(std::get<int64_t>(value)), any);
  }
  AppendBytesField(1, key, pair);
  AppendBytesField(2, any, pair);
  return pair;
}

std::string EncodeSpan(const Span& span) {
  std::string out;
  AppendBytesField(1, Bytes(span.trace_id), out);
  AppendBytesField(2, Bytes(span.span_id), out);
  if (span.parent_id != SpanId{}) AppendBytesField(4, Bytes(span.parent_id), out);
  AppendBytesField(5, span.name, out);
  AppendVarintField(6, kServer, out);
  AppendFixed64Field(7, static_cast<uint64_t>(span.begin), out);
  AppendFixed64Field(8, static_cast<uint64_t>(span.end), out);
  for (const auto& [key, value] : span.attributes) AppendBytesField(9, KeyValue(key, value), out);
  for (const auto& [name, time] : span.events) {
    std::string event;
    AppendFixed64Field(1, static_cast<uint64_t>(time), event);
    AppendBytesField(2, name, event);
    AppendBytesField(11, event, out);
  }
  if (span.failed) {
    std::string status;
    AppendVarintField(3, kError, status);
    AppendBytesField(15, status, out);
  }
  return out;
}

}  // namespace

std::string EncodeOtlp(const Resource& resource, const std::vector<Span>& spans) {
  std::string attributes, scope, of_scope, of_resource, request;
  for (const auto& [key, value] : resource.attributes) {
    AppendBytesField(1, KeyValue(key, value), attributes);
  }
  AppendBytesField(1, "quantd", scope);
  AppendBytesField(2, resource.version, scope);
  AppendBytesField(1, scope, of_scope);
  for (const Span& span : spans) AppendBytesField(2, EncodeSpan(span), of_scope);
  AppendBytesField(1, attributes, of_resource);
  AppendBytesField(2, of_scope, of_resource);
  AppendBytesField(1, of_resource, request);
  return request;
}

}  // namespace quantd::trace
