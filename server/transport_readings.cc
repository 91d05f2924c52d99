#include "server/transport_readings.h"

#include <atomic>

namespace quantd::server {

void ReadCounters(const transport::Counters& counters, metrics::Readings& now) {
  const auto relaxed = [](const auto& value) {
    return static_cast<double>(value.load(std::memory_order_relaxed));
  };
  now.calls = relaxed(counters.calls) + relaxed(counters.watches);
  now.connections = relaxed(counters.connections);
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
