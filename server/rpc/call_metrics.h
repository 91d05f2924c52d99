// The grpc_server_* metrics of one call, from its arrival to its end.
#ifndef QUANTD_SERVER_RPC_CALL_METRICS_H_
#define QUANTD_SERVER_RPC_CALL_METRICS_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/status_code_enum.h>

#include <chrono>

#include "server/metrics/metrics.h"

namespace quantd::rpc {

class CallMetrics {
 public:
  // The call has arrived.
  explicit CallMetrics(metrics::MethodMetrics& method) : method_(method) { method_.started.Add(1); }

  void Received() { method_.received.Add(1); }
  void Sent() { method_.sent.Add(1); }
  // What the server answered.
  void SetCode(grpc::StatusCode code) { code_ = code; }

  // The call is over. What the client did, by cancelling or by letting its deadline pass, counts
  // more than an answer that it never got. REQUIRES: AsyncNotifyWhenDone has completed.
  void Finish(grpc::ServerContext& context) {
    if (code_ == grpc::StatusCode::OK && context.IsCancelled()) {
      code_ = std::chrono::system_clock::now() >= context.deadline()
                  ? grpc::StatusCode::DEADLINE_EXCEEDED
                  : grpc::StatusCode::CANCELLED;
    }
    method_.handled[static_cast<size_t>(code_)].Add(1);
    method_.handling_seconds.Observe(std::chrono::steady_clock::now() - begin_);
  }

 private:
  metrics::MethodMetrics& method_;
  grpc::StatusCode code_ = grpc::StatusCode::OK;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace quantd::rpc

#endif  // QUANTD_SERVER_RPC_CALL_METRICS_H_
