// Reports one call, from its arrival to its end: metrics, a log line if it fails, a span if it is
// traced, and its timing if the client asks for it.
//
// A successful call that is neither traced nor timed costs a few atomic additions of the metrics.
#ifndef QUANTD_SERVER_RPC_CALL_METRICS_H_
#define QUANTD_SERVER_RPC_CALL_METRICS_H_

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "server/metrics/metrics.h"
#include "server/rpc/timeline.h"
#include "server/trace/tracer.h"
#include "server/transport/server_call.h"
#include "server/wire/call_status.h"

namespace quantd::rpc {

class CallMetrics {
 public:
  // The call has arrived. `tracer` is null if tracing is off.
  CallMetrics(metrics::Metrics& metrics, trace::Tracer* tracer, const transport::ServerCall& stream,
              wire::Method method);
  CallMetrics(const CallMetrics&) = delete;
  CallMetrics& operator=(const CallMetrics&) = delete;

  // Records when each step of the call happened; null if neither a trace nor a timing needs it.
  Timeline* timeline() { return observed_ == nullptr ? nullptr : &observed_->timeline; }

  void Received() { method_.received.Add(1); }
  void Sent() { method_.sent.Add(1); }
  // One item of a stream has failed; the stream continues.
  void ItemFailed(const absl::Status& status);
  // The status that the server sends, with the timing if the client asked for it.
  wire::CallStatus End(const absl::Status& status);
  // The call is over. If the client cancelled it or its deadline passed, that counts, and not the
  // response that the client never received.
  void Finish();

 private:
  // Only for calls that are traced or timed.
  struct Observed {
    Timeline timeline;
    std::optional<trace::Context> span;  // nullopt: not traced
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

// Logs a failed call, or a failed item of a stream, at a bounded rate for each code. Logs no
// contents of the request, and only the name of a wrong field. `trace_id`: of our own span, if any.
enum class Failed { kCall, kItem };
void LogFailure(Failed what, absl::string_view method, const absl::Status& status,
                const transport::ServerCall& stream, const std::string& trace_id = "");

// Why a call has no request: the client went away, sent too much, or sent nothing.
inline absl::Status NoRequestStatus(const transport::ServerCall& stream) {
  if (stream.interrupted()) return stream.interruption();
  return absl::InvalidArgumentError("the call has no request: the client ended it without one");
}

}  // namespace quantd::rpc

#endif  // QUANTD_SERVER_RPC_CALL_METRICS_H_
