#include "server/transport/connection_set.h"

#include <utility>
#include <vector>

#include "server/transport/connection.h"

namespace quantd::transport {
namespace {

constexpr std::chrono::milliseconds kLookEvery{250};

}  // namespace

void ConnectionSet::Add(Connection& connection) {
  connections_.insert(&connection);
  if (!set()) loop_.timers().Set(*this, loop_.now() + kLookEvery);
}

void ConnectionSet::Remove(Connection& connection) {
  connections_.erase(&connection);
  Missed(connection.peer());
}

void ConnectionSet::Missed(const Peer& peer) {
  size_.fetch_sub(1, std::memory_order_relaxed);
  context_.peers.Remove(peer.id, index_);
}

void ConnectionSet::Evict(uint64_t peer, bool idle_only) {
  Connection* quietest = nullptr;
  const auto order = [](const Connection& connection) {
    return std::pair(connection.streams(), connection.heard_at());
  };
  for (Connection* connection : connections_) {
    if (connection->peer().id != peer || (idle_only && connection->streams() != 0)) continue;
    if (quietest == nullptr || order(*connection) < order(*quietest)) quietest = connection;
  }
  if (quietest != nullptr) quietest->Close();
}

void ConnectionSet::GoAway() {
  const std::vector<Connection*> all(connections_.begin(), connections_.end());
  for (Connection* connection : all) connection->GoAway();
}

void ConnectionSet::EndCalls(const absl::Status& status) {
  for (Connection* connection : connections_) connection->EndCalls(status);
}

void ConnectionSet::Close() {
  const std::vector<Connection*> all(connections_.begin(), connections_.end());
  for (Connection* connection : all) connection->Close();
}

void ConnectionSet::Fire() {
  const loop::Clock::time_point now = loop::Clock::now();
  const bool anyone_waits = context_.handler.AnyoneWaits() || context_.receiving.waiting() > 0;
  context_.receiving.Look(now);
  const std::vector<Connection*> all(connections_.begin(), connections_.end());
  for (Connection* connection : all) connection->Look(now, anyone_waits);
  if (!connections_.empty()) loop_.timers().Set(*this, now + kLookEvery);
}

}  // namespace quantd::transport
