// What one peer has of the tables that all connections share. All connections of a peer have the
// same one.
#ifndef QUANTD_SERVER_TRANSPORT_PEER_ACCOUNT_H_
#define QUANTD_SERVER_TRANSPORT_PEER_ACCOUNT_H_

#include <atomic>
#include <cstdint>

namespace quantd::transport {

// Safe from any thread.
struct PeerAccount {
  std::atomic<int64_t> calls{0};
  std::atomic<int64_t> watches{0};  // calls that only wait for news
};

}  // namespace quantd::transport

#endif  // QUANTD_SERVER_TRANSPORT_PEER_ACCOUNT_H_
