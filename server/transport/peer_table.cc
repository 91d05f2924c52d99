#include "server/transport/peer_table.h"

#include <algorithm>

#include "server/scheduling/peer_share.h"

namespace quantd::transport {

PeerTable::Outcome PeerTable::Add(uint64_t peer, size_t set) {
  const std::lock_guard lock(mutex_);
  Outcome outcome;
  const auto own = counts_.find(peer);
  const int64_t own_count = own == counts_.end() ? 0 : own->second.all;
  const bool has_share = own_count >= scheduling::ShareOfOnePeer(most_);
  outcome.may_come = all_ < most_ && !has_share;
  if (!outcome.may_come) {
    const auto largest = has_share ? own
                                   : std::max_element(counts_.begin(), counts_.end(),
                                                      [](const auto& a, const auto& b) {
                                                        return a.second.all < b.second.all;
                                                      });
    if (largest == counts_.end()) return outcome;
    const std::vector<int64_t>& by_set = largest->second.by_set;
    outcome.someone_goes = true;
    outcome.peer = largest->first;
    outcome.set = std::max_element(by_set.begin(), by_set.end()) - by_set.begin();
    // The largest peer must have at least one more than the newcomer would have, or two peers would
    // evict each other for ever.
    outcome.may_come = !has_share && largest->second.all > own_count + 1;
    outcome.idle_only = !outcome.may_come;
    if (!outcome.may_come) return outcome;
  }
  Count& count = counts_[peer];
  if (count.by_set.size() <= set) count.by_set.resize(set + 1);
  ++count.all;
  ++count.by_set[set];
  ++all_;
  outcome.account = count.account;
  return outcome;
}

void PeerTable::Remove(uint64_t peer, size_t set) {
  const std::lock_guard lock(mutex_);
  const auto found = counts_.find(peer);
  if (found == counts_.end()) return;
  --found->second.by_set[set];
  --all_;
  if (--found->second.all == 0) counts_.erase(found);
}

}  // namespace quantd::transport
