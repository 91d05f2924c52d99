// The other end of a connection, and what it has of the tables that all connections share.
#ifndef QUANTD_SERVER_TRANSPORT_PEER_H_
#define QUANTD_SERVER_TRANSPORT_PEER_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "server/net/peer_name.h"

namespace quantd::transport {

// All connections of a peer have the same one. Safe from any thread.
struct PeerAccount {
  std::atomic<int64_t> calls{0};
  std::atomic<int64_t> watches{0};  // calls that only wait for news
  std::atomic<int64_t> connections{0};
  std::atomic<int64_t> backlog{0};  // bytes: see connection_backlog.cc
};

struct Peer : net::Peer {
  std::shared_ptr<PeerAccount> account = nullptr;  // of PeerTable; null: not asked yet
};

}  // namespace quantd::transport

#endif  // QUANTD_SERVER_TRANSPORT_PEER_H_
