// What every call needs: the service that calls are asked of, and the rooms that they walk through.
// One for the server; outlives every call.
#ifndef QUANTD_SERVER_RPC_BACKEND_H_
#define QUANTD_SERVER_RPC_BACKEND_H_

#include <atomic>
#include <cstdint>
#include <string>

#include "quantd/executor.h"
#include "server/admission/admission.h"
#include "server/metrics/metrics.h"
#include "server/rpc/call.h"
#include "server/rpc/service.h"

namespace quantd::rpc {

struct Backend {
  Calls& calls;
  Service& service;
  admission::Admission& admission;
  metrics::Metrics& metrics;
  const Executor& pool;     // the kernels' threads
  const Executor& inline_;  // this thread alone
  uint64_t inline_bytes;    // work up to this size runs on the polling thread
  uint64_t max_message_bytes;
  grpc::ByteBuffer info;              // the answer of GetServerInfo
  std::atomic<int> answering{0};      // calls with one answer that have come and are not over
  std::atomic<bool> draining{false};  // streams take no further item
};

}  // namespace quantd::rpc

#endif  // QUANTD_SERVER_RPC_BACKEND_H_
