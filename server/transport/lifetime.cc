#include "server/transport/lifetime.h"

namespace quantd::transport {
namespace {

constexpr std::chrono::seconds kHandshake{10};  // also of TLS
constexpr std::chrono::seconds kLinger{1};

}  // namespace

Lifetime::Step Lifetime::Leave(Time now) {
  if (leaving_ != Leaving::kNo) return {};
  leaving_ = Leaving::kAnnounced;
  leave_at_ = now;
  return {Do::kAnnounce};
}

Lifetime::Step Lifetime::OnPong(size_t calls, Time now) {
  if (leaving_ == Leaving::kAnnounced) {
    leaving_ = Leaving::kKnown;
    return calls == 0 ? OnNoCall(now) : Step();
  }
  if (leaving_ != Leaving::kAsked) return {};
  leaving_ = Leaving::kKnown;
  return calls == 0 ? GoAway() : Step();
}

Lifetime::Step Lifetime::OnNoCall(Time now) {
  if (leaving_ != Leaving::kKnown) return {};
  leaving_ = Leaving::kAsked;
  leave_at_ = now;
  return {Do::kPing};
}

Lifetime::Step Lifetime::Look(Time now, const Facts& facts) {
  if (!spoke_ && now - opened_at_ > kHandshake) return {Do::kEnd, ConnectionEnd::kNoHandshake};
  // The handshake has not ended, so the client can't be told.
  if (facts.handshaking && left()) return {Do::kClose};
  if (lingers_ && now - leave_at_ > kLinger) return {Do::kClose};
  if (!facts.throttled && !pinged_ && now - heard_at_ > limits_.keepalive) {
    pinged_ = true;
    pinged_at_ = now;
    return {Do::kPing};
  }
  if (pinged_ && now - pinged_at_ > limits_.keepalive / 3) {
    return {Do::kEnd, ConnectionEnd::kSilent};
  }
  if (facts.blocked && facts.anyone_waits && now - moved_at_ > limits_.stall) {
    return {Do::kEnd, ConnectionEnd::kStalled};
  }
  const bool asked = leaving_ == Leaving::kAnnounced || leaving_ == Leaving::kAsked;
  if (asked && facts.calls == 0 && now - leave_at_ > limits_.leave_timeout) return GoAway();
  const auto age = now - opened_at_;
  if (limits_.max_connection_age.count() == 0 || age <= limits_.max_connection_age) return {};
  if (leaving_ == Leaving::kNo) return {Leave(now).what, ConnectionEnd::kAge};
  const bool over = age > limits_.max_connection_age + limits_.max_connection_age_grace;
  return {over ? Do::kClose : Do::kNothing};
}

}  // namespace quantd::transport
