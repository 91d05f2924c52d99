// What every call needs: the service that calls are asked of, and the rooms that they walk through.
// One for the server; outlives every call.
#ifndef QUANTD_SERVER_RPC_BACKEND_H_
#define QUANTD_SERVER_RPC_BACKEND_H_

#include <atomic>
#include <cstdint>
#include <string>

#include "quantd/executor.h"
#include "quantd/v1/quantization.grpc.pb.h"
#include "server/admission/admission.h"
#include "server/metrics/metrics.h"
#include "server/rpc/call.h"

namespace quantd::rpc {

// Tensors stay bytes: only GetServerInfo, which has none, comes as a parsed message.
using Service = v1::QuantizationService::WithRawMethod_Quantize<
    v1::QuantizationService::WithRawMethod_Dequantize<
        v1::QuantizationService::WithRawMethod_DynamicQuantize<
            v1::QuantizationService::WithRawMethod_Stream<
                v1::QuantizationService::WithAsyncMethod_GetServerInfo<
                    v1::QuantizationService::Service>>>>>;

struct Backend {
  Calls& calls;
  Service& service;
  admission::Admission& admission;
  metrics::Metrics& metrics;
  const Executor& pool;     // the kernels' threads
  const Executor& inline_;  // this thread alone
  uint64_t inline_bytes;    // work up to this size runs on the polling thread
  uint64_t max_message_bytes;
  v1::GetServerInfoResponse info;     // the answer of GetServerInfo
  std::atomic<bool> draining{false};  // streams take no further item
};

}  // namespace quantd::rpc

#endif  // QUANTD_SERVER_RPC_BACKEND_H_
