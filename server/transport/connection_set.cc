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
  Missed();
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
  context_.receiving.Look();
  const std::vector<Connection*> all(connections_.begin(), connections_.end());
  for (Connection* connection : all) connection->Look(now, anyone_waits);
  if (!connections_.empty()) loop_.timers().Set(*this, now + kLookEvery);
}

}  // namespace quantd::transport
