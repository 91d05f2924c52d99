// The trace that a call belongs to, from its metadata `traceparent` (W3C Trace Context).
//
//   00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
//   version, trace id, id of the caller's span, flags (1: sampled)
#ifndef QUANTD_SERVER_TRACE_CONTEXT_H_
#define QUANTD_SERVER_TRACE_CONTEXT_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace quantd::trace {

using TraceId = std::array<uint8_t, 16>;
using SpanId = std::array<uint8_t, 8>;

struct Context {
  TraceId trace_id = {};
  SpanId span_id = {};
  bool sampled = false;
};

// nullopt if the text is invalid. Later versions are read as far as they agree with version 00.
std::optional<Context> ParseTraceParent(absl::string_view text);
// The text of version 00.
std::string TraceParent(const Context& context);

// Of a trace or a span.
std::string Hexadecimal(absl::Span<const uint8_t> id);

}  // namespace quantd::trace

#endif  // QUANTD_SERVER_TRACE_CONTEXT_H_
