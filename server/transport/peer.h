// The other end of a connection, and its shares of the tables that all connections use.
#ifndef QUANTD_SERVER_TRANSPORT_PEER_H_
#define QUANTD_SERVER_TRANSPORT_PEER_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "server/net/peer_name.h"

namespace quantd::transport {

// Shared by all connections of a peer. Thread-safe.
struct PeerAccount {
  std::atomic<int64_t> connections{0};
  std::atomic<int64_t> backlog{0};  // in bytes; see connection_backlog.cc
};

struct Peer : net::Peer {
  std::shared_ptr<PeerAccount> account = nullptr;  // from PeerTable; null: not set yet
};

}  // namespace quantd::transport

#endif  // QUANTD_SERVER_TRANSPORT_PEER_H_
