#include "server/drain_log.h"

#include "server/log/log.h"
#include "server/wire/method.h"

namespace quantd::server {

DrainLog::DrainLog(const transport::Counters& counters, metrics::Metrics& metrics)
    : counters_(counters),
      metrics_(metrics),
      connections_(counters.connections),
      calls_(counters.calls + counters.watches),
      handled_(Handled()) {}

void DrainLog::Write() const {
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin_;
  log::Info("drained", {{"connections", connections_},
                        {"calls", calls_},
                        {"calls_finished", Handled() - handled_},
                        {"calls_cut", counters_.calls + counters_.watches},
                        {"seconds", time.count()}});
}

uint64_t DrainLog::Handled() const {
  uint64_t sum = 0;
  for (const wire::MethodInfo& info : wire::kMethods) {
    for (const metrics::Counter& counter : metrics_.method(info.method).handled) {
      sum += counter.value();
    }
  }
  return sum;
}

}  // namespace quantd::server
