// The grpc_server_* metrics of one call, from its arrival to its end.
#ifndef QUANTD_SERVER_RPC_CALL_METRICS_H_
#define QUANTD_SERVER_RPC_CALL_METRICS_H_

#include <chrono>

#include "absl/status/status.h"
#include "server/errors/reason.h"
#include "server/metrics/metrics.h"
#include "server/transport/stream.h"

namespace quantd::rpc {

class CallMetrics {
 public:
  // The call has arrived.
  CallMetrics(metrics::Metrics& metrics, wire::Method method)
      : metrics_(metrics), kind_(method), method_(metrics.method(method)) {
    method_.started.Add(1);
  }

  void Received() { method_.received.Add(1); }
  void Sent() { method_.sent.Add(1); }
  // A request was turned away, if that is what the status says.
  void Rejected(const absl::Status& status) { metrics_.CountRejection(errors::Reason(status)); }
  // What the server answered.
  void SetStatus(const absl::Status& status) {
    code_ = status.code();
    if (!status.ok()) Rejected(status);
  }

  // The call is over. What the client did, by cancelling or by letting its deadline pass, counts
  // more than an answer that it never got.
  void Finish(const transport::Stream& stream) {
    if (code_ == absl::StatusCode::kOk && stream.interrupted()) {
      code_ = stream.interruption().code();
    }
    metrics_.CountCall(kind_, code_, std::chrono::steady_clock::now() - begin_, "");
  }

 private:
  metrics::Metrics& metrics_;
  const wire::Method kind_;
  metrics::MethodMetrics& method_;
  absl::StatusCode code_ = absl::StatusCode::kOk;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

// Why a call has no request: the client went away, sent too much, or nothing.
inline absl::Status WhyNoRequest(const transport::Stream& stream) {
  if (stream.interrupted()) return stream.interruption();
  return absl::InvalidArgumentError("the call has no request: the client ended it without one");
}

}  // namespace quantd::rpc

#endif  // QUANTD_SERVER_RPC_CALL_METRICS_H_
