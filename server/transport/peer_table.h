// Counts the connections of each peer in each set. When the maximum is reached, it decides who is
// let in and whose connection is closed for it. Thread-safe.
#ifndef QUANTD_SERVER_TRANSPORT_PEER_TABLE_H_
#define QUANTD_SERVER_TRANSPORT_PEER_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "server/transport/peer.h"

namespace quantd::transport {

class PeerTable {
 public:
  explicit PeerTable(int64_t most) : most_(most) {}

  // What to do with a newcomer. It is counted if it may come in.
  struct Outcome {
    bool may_come = false;
    // There were too many: a connection of `peer` in this set must be closed, if `idle_only` one
    // without calls.
    bool someone_goes = false;
    bool idle_only = false;
    size_t set = 0;
    uint64_t peer = 0;
    std::shared_ptr<PeerAccount> account;  // of the newcomer, if it may come in
  };
  // A peer that has its share already (loop/peer_share.h) is refused as if there were too many.
  Outcome Add(uint64_t peer, size_t set);
  void Remove(uint64_t peer, size_t set);

  int64_t connections() const {
    const std::lock_guard lock(mutex_);
    return all_;
  }

 private:
  struct Count {
    int64_t all = 0;
    std::vector<int64_t> by_set;
    std::shared_ptr<PeerAccount> account = std::make_shared<PeerAccount>();
  };
  const int64_t most_;
  mutable std::mutex mutex_;
  std::unordered_map<uint64_t, Count> counts_;
  int64_t all_ = 0;
};

}  // namespace quantd::transport

#endif  // QUANTD_SERVER_TRANSPORT_PEER_TABLE_H_
