// The rule for everything that peers share (calls, watches, connections, memory, queues): one peer
// never gets the last quarter, nor more than three times what was free. A peer that has its share
// waits or is refused, and the others continue.
#ifndef QUANTD_SERVER_SCHEDULING_PEER_SHARE_H_
#define QUANTD_SERVER_SCHEDULING_PEER_SHARE_H_

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <unordered_map>

namespace quantd::scheduling {

// How much one peer may have of a table with room for `most`: all of it if a quarter is less than
// one.
template <std::integral Integer>
constexpr Integer ShareOfOnePeer(Integer most) {
  return most - most / 4;
}

// What each peer has of one table, in any unit. For one thread at a time.
class PeerShares {
 public:
  explicit PeerShares(uint64_t most) : most_(most) {}

  // Whether the peer stays within its share with `amount` more: it then has at most three quarters
  // of the table, and at most three times what was free, as in places.h. A peer that has nothing
  // always does, because something larger than a share must be possible.
  bool Within(uint64_t peer, uint64_t amount) const {
    const uint64_t has = Of(peer);
    if (has == 0) return true;
    const uint64_t free = most_ - std::min(most_, sum_);
    const uint64_t share = std::min(ShareOfOnePeer(most_), 3 * free);
    return amount <= share && has <= share - amount;
  }
  // What all peers have; may exceed the table.
  uint64_t sum() const { return sum_; }
  uint64_t Of(uint64_t peer) const {
    const auto found = taken_.find(peer);
    return found == taken_.end() ? 0 : found->second;
  }
  void Take(uint64_t peer, uint64_t amount) {
    if (amount != 0) taken_[peer] += amount;
    sum_ += amount;
  }
  // REQUIRES: the peer has at least `amount`.
  void Give(uint64_t peer, uint64_t amount) {
    if (amount == 0) return;
    sum_ -= amount;
    const auto found = taken_.find(peer);
    found->second -= amount;
    if (found->second == 0) taken_.erase(found);
  }

 private:
  const uint64_t most_;
  uint64_t sum_ = 0;
  std::unordered_map<uint64_t, uint64_t> taken_;
};

}  // namespace quantd::scheduling

#endif  // QUANTD_SERVER_SCHEDULING_PEER_SHARE_H_
