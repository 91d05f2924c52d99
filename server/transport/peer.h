// The other end of a connection.
#ifndef QUANTD_SERVER_TRANSPORT_PEER_H_
#define QUANTD_SERVER_TRANSPORT_PEER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "server/transport/peer_account.h"

namespace quantd::transport {

struct Peer {
  // The same for all connections from one IP address (IPv6: one /64), or of one local process on a
  // Unix socket: who shares what is shared by peers.
  uint64_t id = 0;
  std::string name;  // for the log: "ipv4:127.0.0.1:4711", "ipv6:[::1]:4711", "unix:pid:4711"
  std::shared_ptr<PeerAccount> account = nullptr;  // of PeerTable; null: not asked yet
};

// Of a connected socket.
Peer PeerOf(int fd);

}  // namespace quantd::transport

#endif  // QUANTD_SERVER_TRANSPORT_PEER_H_
