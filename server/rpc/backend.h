// The components that every call uses. There is one per server; it outlives every call.
#ifndef QUANTD_SERVER_RPC_BACKEND_H_
#define QUANTD_SERVER_RPC_BACKEND_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "quantd/executor.h"
#include "server/admission/admission.h"
#include "server/memory/buffer.h"
#include "server/metrics/metrics.h"
#include "server/regions/regions.h"
#include "server/rpc/call.h"
#include "server/scheduling/compute_slots.h"
#include "server/scheduling/policy.h"
#include "server/scheduling/thread_pool.h"
#include "server/trace/tracer.h"
#include "server/transport/encoding.h"

namespace quantd::rpc {

// The threads of kernels, by the number of cores that a computation has. Thread-safe.
class Executors {
 public:
  explicit Executors(int cores) {
    for (int threads = 1; threads < cores; threads *= 2) Add(threads);
    Add(cores);
  }

  // An executor that uses at most `cores`, and more than half of them. REQUIRES: cores >= 1.
  const Executor& of(int cores) const {
    size_t index = all_.size() - 1;
    while (all_[index]->threads() > cores) --index;
    return *all_[index];
  }

 private:
  void Add(int threads) { all_.push_back(std::make_unique<Executor>(threads)); }

  std::vector<std::unique_ptr<Executor>> all_;
};

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
