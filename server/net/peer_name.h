// The other end of a connection.
#ifndef QUANTD_SERVER_NET_PEER_NAME_H_
#define QUANTD_SERVER_NET_PEER_NAME_H_

#include <cstdint>
#include <string>

namespace quantd::net {

struct Peer {
  // The same for all connections of one peer: one IP address (IPv6: one /64), or one local process
  // on a Unix socket (before Linux 6.9, all processes of other PID namespaces are one peer). Peers
  // share the tables by this number.
  uint64_t id = 0;
  std::string name;  // for the log: "ipv4:127.0.0.1:4711", "ipv6:[::1]:4711", "unix:pid:4711",
  // or "unix:pid:0,pidfd:4711" of another PID namespace
};

// The peer of a connected socket.
Peer PeerOf(int fd);

}  // namespace quantd::net

#endif  // QUANTD_SERVER_NET_PEER_NAME_H_
