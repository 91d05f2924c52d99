// What others get to know of one call, from its arrival to its end: metrics, a line in the log when
// it fails, a span when it is traced, and its timing when the client asks.
//
// Of a call that is none of these it costs the metrics' few atomic additions.
#ifndef QUANTD_SERVER_RPC_CALL_METRICS_H_
#define QUANTD_SERVER_RPC_CALL_METRICS_H_

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "server/errors/call_status.h"
#include "server/errors/reason.h"
#include "server/metrics/metrics.h"
#include "server/rpc/timeline.h"
#include "server/trace/tracer.h"
#include "server/transport/server_call.h"

namespace quantd::rpc {

class CallMetrics {
 public:
  // The call has arrived. `tracer`: null when nothing is traced.
  CallMetrics(metrics::Metrics& metrics, trace::Tracer* tracer, const transport::ServerCall& stream,
              wire::Method method);
  CallMetrics(const CallMetrics&) = delete;
  CallMetrics& operator=(const CallMetrics&) = delete;

  // Where its work writes down when it did what; null when nobody wants to know.
  Timeline* timeline() { return observed_ == nullptr ? nullptr : &observed_->timeline; }

  void Received() { method_.received.Add(1); }
  void Sent() { method_.sent.Add(1); }
  // One of the stream's items failed, alone.
  void ItemFailed(const absl::Status& status);
  // What the server answers, with the timing if that was asked for.
  errors::CallStatus End(const absl::Status& status);
  // The call is over. What the client did, by cancelling or by letting its deadline pass, counts
  // more than a response that it never got.
  void Finish();

 private:
  // Only of calls that somebody wants to know more about.
  struct Observed {
    Timeline timeline;
    std::optional<trace::Context> span;  // unset: not traced
  };
  void AddSpan(const absl::Status& status) const;

  metrics::Metrics& metrics_;
  trace::Tracer* const tracer_;
  const transport::ServerCall& stream_;
  const wire::Method kind_;
  metrics::MethodMetrics& method_;
  absl::Status status_;
  std::unique_ptr<Observed> observed_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

// A line about a call, or one item of a stream, that failed, at a bounded rate for each code. Never
// what the request held: of a wrong field only its name. `trace_id`: of our own span, if any.
enum class Failed { kCall, kItem };
void LogFailure(Failed what, absl::string_view method, const absl::Status& status,
                const transport::ServerCall& stream, const std::string& trace_id = "");

// Why a call has no request: the client went away, sent too much, or nothing.
inline absl::Status NoRequestStatus(const transport::ServerCall& stream) {
  if (stream.interrupted()) return stream.interruption();
  return absl::InvalidArgumentError("the call has no request: the client ended it without one");
}

}  // namespace quantd::rpc

#endif  // QUANTD_SERVER_RPC_CALL_METRICS_H_
