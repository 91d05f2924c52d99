#include "server/rpc/call_metrics.h"

#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "quantd/field_error.h"
#include "server/log/log.h"
#include "server/wire/status_details.h"

namespace quantd::rpc {
namespace {

using log::Level;
using log::Repeated;

// The most bytes of a text in the log: a path may be invented by a client.
constexpr size_t kMostMessage = 256;

Level LevelOf(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kOk:
    case absl::StatusCode::kCancelled:
      return Level::kDebug;
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kDataLoss:
      return Level::kError;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kDeadlineExceeded:
      return Level::kWarn;
    default:
      return Level::kInfo;
  }
}

// One per code, so that a flood of one kind hides no other.
template <size_t... codes>
std::array<Repeated, sizeof...(codes)> MakeAll(absl::string_view event,
                                               std::index_sequence<codes...>) {
  return {Repeated(LevelOf(static_cast<absl::StatusCode>(codes)), event)...};
}

Repeated& LinesOf(absl::StatusCode code) {
  static auto lines = MakeAll("call failed", std::make_index_sequence<wire::kCallCodes>());
  return lines[static_cast<size_t>(code)];
}

std::string TypeName(DataType type) {
  for (const DataTypeInfo& info : kDataTypes) {
    if (info.type == type) return std::string(info.name);
  }
  return "";
}

}  // namespace

void LogFailure(Failed what, absl::string_view method, const absl::Status& status,
                const transport::ServerCall& stream, const std::string& trace_id) {
  LinesOf(status.code()).Write([&] {
    const transport::Head& head = stream.head();
    log::Fields fields = {{"method", method},
                          {"code", absl::StatusCodeToString(status.code())},
                          {"peer", stream.peer_name()}};
    if (what == Failed::kItem) fields.emplace_back("item", true);
    const std::string reason = wire::Reason(status);
    if (reason != absl::StatusCodeToString(status.code())) fields.emplace_back("reason", reason);
    // The text of a field's error may contain the value of an element.
    if (const std::string field = ErrorField(status); !field.empty()) {
      fields.emplace_back("field", field);
    } else {
      fields.emplace_back("error", status.message().substr(0, kMostMessage));
    }
    if (!head.request_id().empty()) fields.emplace_back("request_id", head.request_id());
    if (head.trace().has_value()) {
      fields.emplace_back("traceparent", trace::TraceParent(*head.trace()));
    }
    if (!trace_id.empty()) fields.emplace_back("trace_id", trace_id);
    return fields;
  });
}

CallMetrics::CallMetrics(metrics::Metrics& metrics, trace::Tracer* tracer,
                         const transport::ServerCall& stream, wire::Method method)
    : metrics_(metrics),
      tracer_(tracer),
      stream_(stream),
      kind_(method),
      method_(metrics.method(method)) {
  method_.started.Add(1);
  const bool timed = stream.head().wants_timing();
  if (!timed && tracer == nullptr) return;
  std::optional<trace::Context> span;
  if (tracer != nullptr) span = tracer->Begin(stream.head().trace());
  if (!timed && !span.has_value()) return;
  observed_ = std::make_unique<Observed>();
  observed_->span = span;
}

void CallMetrics::ItemFailed(const absl::Status& status) {
  metrics_.CountRejection(wire::Reason(status));
  LogFailure(Failed::kItem, wire::Name(kind_), status, stream_);
}

wire::CallStatus CallMetrics::End(const absl::Status& status) {
  status_ = status;
  if (!status.ok()) metrics_.CountRejection(wire::Reason(status));
  wire::CallStatus end = wire::ToCallStatus(status);
  if (stream_.head().wants_timing()) {
    // Empty if no phase was reached.
    if (std::string text = observed_->timeline.Text(); !text.empty()) {
      end.metadata.emplace_back("quantd-timing-us", std::move(text));
    }
  }
  return end;
}

void CallMetrics::Finish() {
  if (status_.ok() && stream_.interrupted()) status_ = stream_.interruption();
  const auto took = std::chrono::steady_clock::now() - begin_;
  const bool traced = observed_ != nullptr && observed_->span.has_value();
  metrics_.CountCall(kind_, status_.code(), took);
  if (!status_.ok()) {
    LogFailure(Failed::kCall, wire::Name(kind_), status_, stream_,
               traced ? trace::Hexadecimal(observed_->span->trace_id) : "");
  }
  if (traced) AddSpan(status_);
}

void CallMetrics::AddSpan(const absl::Status& status) const {
  const auto now = std::chrono::steady_clock::now();
  const int64_t unix_now =
      std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count();
  const auto unix_time = [&](std::chrono::steady_clock::time_point time) {
    return unix_now - std::chrono::nanoseconds(now - time).count();
  };
  const wire::MethodInfo& info = wire::Info(kind_);
  const transport::Head& head = stream_.head();
  const Timeline& timeline = observed_->timeline;
  trace::Span span;
  span.trace_id = observed_->span->trace_id;
  span.span_id = observed_->span->span_id;
  if (head.trace().has_value()) span.parent_id = head.trace()->span_id;
  span.name = absl::StrCat(info.service, "/", info.name);
  span.begin = unix_time(begin_);
  span.end = unix_now;
  // OpenTelemetry's conventions for servers: errors of the caller are not errors here.
  span.failed = LevelOf(status.code()) >= Level::kWarn;
  const auto text = [&span](absl::string_view name, absl::string_view value) {
    span.attributes.emplace_back(name, std::string(value));
  };
  const auto number = [&span](absl::string_view name, int64_t value) {
    span.attributes.emplace_back(name, value);
  };
  text("rpc.system", "grpc");
  text("rpc.service", info.service);
  text("rpc.method", info.name);
  number("rpc.grpc.status_code", static_cast<int64_t>(status.code()));
  text("network.peer.address", stream_.peer_name());
  if (!status.ok()) text("quantd.reason", wire::Reason(status));
  if (timeline.kernel_ended != Timeline::Clock::time_point()) {
    text("quantd.input_type", TypeName(timeline.input));
    text("quantd.output_type", TypeName(timeline.output));
    number("quantd.elements", timeline.elements);
    number("quantd.bytes_in", timeline.bytes_in);
    number("quantd.bytes_out", timeline.bytes_out);
  }
  const std::string timing = timeline.Text();
  if (!timing.empty()) text("quantd.timing_us", timing);
  const auto event = [&](absl::string_view name, Timeline::Clock::time_point time) {
    if (time != Timeline::Clock::time_point()) span.events.emplace_back(name, unix_time(time));
  };
  event("decoded", timeline.decoded);
  event("kernel begins", timeline.kernel_began);
  event("kernel ends", timeline.kernel_ended);
  tracer_->Write(span);
}

}  // namespace quantd::rpc
