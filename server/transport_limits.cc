#include "server/transport_limits.h"

#include <chrono>

#include "absl/time/time.h"

namespace quantd::server {
namespace {

// A positive time never becomes 0.
std::chrono::milliseconds ToMilliseconds(absl::Duration time) {
  return absl::ToChronoMilliseconds(absl::Ceil(time, absl::Milliseconds(1)));
}

}  // namespace

transport::Limits TransportLimits(const Options& options) {
  transport::Limits limits;
  limits.max_message_bytes = options.memory.max_message;
  if (options.memory.limited_by_receiving) limits.message_flag = "--receive_budget_bytes";
  limits.max_streams = static_cast<uint32_t>(options.max_streams);
  limits.max_calls = options.max_calls();
  limits.max_watches = options.max_connections + 256;
  limits.max_connections = options.max_connections;
  limits.keepalive = ToMilliseconds(options.keepalive);
  limits.max_connection_age = ToMilliseconds(options.max_connection_age);
  limits.max_connection_age_grace = ToMilliseconds(options.max_connection_age_grace);
  limits.stall = ToMilliseconds(options.stall_timeout);
  limits.min_rate = static_cast<uint64_t>(options.min_transfer_rate);
  limits.max_backlog = static_cast<int64_t>(options.max_connections * memory::kBacklogBytes);
  limits.queue_timeout = ToMilliseconds(options.queue_timeout);
  return limits;
}

}  // namespace quantd::server
