// The log line of a drain: the calls that it found, and how they ended.
#ifndef QUANTD_SERVER_DRAIN_LOG_H_
#define QUANTD_SERVER_DRAIN_LOG_H_

#include <chrono>
#include <cstdint>

#include "server/metrics/metrics.h"
#include "server/transport/transport_context.h"

namespace quantd::server {

class DrainLog {
 public:
  // Call at the beginning of the drain. Both arguments must outlive this.
  DrainLog(const transport::Counters& counters, metrics::Metrics& metrics);

  // Call before the remaining calls are cut off.
  void Write() const;

 private:
  uint64_t Handled() const;

  const transport::Counters& counters_;
  metrics::Metrics& metrics_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  const int64_t connections_;
  const int64_t calls_;
  const uint64_t handled_;
};

}  // namespace quantd::server

#endif  // QUANTD_SERVER_DRAIN_LOG_H_
