// The components that every call uses. There is one per server; it outlives every call.
#ifndef QUANTD_SERVER_RPC_BACKEND_H_
#define QUANTD_SERVER_RPC_BACKEND_H_

#include <atomic>
#include <chrono>
#include <cstdint>

#include "server/admission/admission.h"
#include "server/memory/buffer.h"
#include "server/metrics/metrics.h"
#include "server/regions/regions.h"
#include "server/rpc/call.h"
#include "server/rpc/executors.h"
#include "server/scheduling/compute_slots.h"
#include "server/scheduling/policy.h"
#include "server/scheduling/thread_pool.h"
#include "server/trace/tracer.h"
#include "server/transport/encoding.h"

namespace quantd::rpc {

struct Backend {
  Calls& calls;
  admission::Admission& admission;
  memory::Pool& pool;
  metrics::Metrics& metrics;
  scheduling::ThreadPool* thread_pool = nullptr;  // set before the first call
  scheduling::ComputeSlots& cores;
  const Executors& executors;
  const scheduling::Policy policy;
  const uint64_t max_message_bytes;
  // A request that has waited this long for memory and a core is refused.
  const std::chrono::nanoseconds queue_timeout;
  // A client that sends nothing for this long loses the memory that others wait for.
  const std::chrono::nanoseconds stall_timeout;
  // How responses are compressed if the call does not say, and from how many bytes on.
  const transport::Encoding compress_answers = transport::Encoding::kIdentity;
  const uint64_t compress_answers_from = 1024;
  std::atomic<bool> draining{false};  // streams take no more items
  // Traces calls; null: no tracing. Set before the first call.
  trace::Tracer* tracer = nullptr;
  // Shared memory; null: off. Set before the first call.
  regions::Regions* regions = nullptr;
};

}  // namespace quantd::rpc

#endif  // QUANTD_SERVER_RPC_BACKEND_H_
