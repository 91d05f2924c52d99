#include "server/transport_numbers.h"

#include <atomic>
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

void ReadCounters(const transport::TransportContext& context, metrics::Readings& now) {
  const transport::Counters& counters = context.counters;
  const auto relaxed = [](const auto& value) {
    return static_cast<double>(value.load(std::memory_order_relaxed));
  };
  now.calls = static_cast<double>(context.open_calls());
  now.connections = static_cast<double>(context.connections.taken());
  now.connections_accepted = relaxed(counters.accepted);
  static_assert(transport::kConnectionEnds == metrics::kConnectionEnds.size());
  for (size_t i = 0; i < counters.ended.size(); ++i) {
    now.connections_ended[i] = relaxed(counters.ended[i]);
  }
  static_assert(access::kRefusals == metrics::kHandshakeRefusals.size());
  for (size_t i = 0; i < counters.refused_handshakes.size(); ++i) {
    now.handshakes_refused[i] = relaxed(counters.refused_handshakes[i]);
  }
  now.connections_throttled = relaxed(counters.abuse(transport::AbuseAction::kConnectionThrottled));
  now.answers_stalled = relaxed(counters.abuse(transport::AbuseAction::kAnswerStalled));
  static_assert(transport::kAbuseActions + 1 == metrics::kGuardActions.size());
  static_assert(
      metrics::kGuardActions[static_cast<size_t>(transport::AbuseAction::kAnswerStalled)] ==
      "answer_stalled");
  for (size_t i = 0; i < counters.abuse_actions.size(); ++i) {
    now.guard_actions[i] = relaxed(counters.abuse_actions[i]);
  }
}

}  // namespace quantd::server
