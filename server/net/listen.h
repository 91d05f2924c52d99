// Sockets that listen: TCP on IPv4 and IPv6, and Unix sockets.
//
//   absl::StatusOr<Listening> listening = Listen("127.0.0.1:0", "--listen");
//   listening->address == "127.0.0.1:41234"
#ifndef QUANTD_SERVER_NET_LISTEN_H_
#define QUANTD_SERVER_NET_LISTEN_H_

#include <netdb.h>
#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace quantd::net {

// A socket that listens and does not block. Closes it; a Unix socket's file goes with it, unless
// another one has taken its place meanwhile.
class Listener {
 public:
  Listener(int fd, std::string path);
  Listener(Listener&& other) noexcept;
  Listener& operator=(Listener&&) = delete;
  ~Listener();

  int fd() const { return fd_; }
  bool is_unix() const { return !path_.empty(); }
  // Gives the socket away. REQUIRES: not a Unix socket.
  int Release() { return std::exchange(fd_, -1); }
  // Takes no more connections; those that wait in its queue are refused.
  void Close();

 private:
  int fd_;
  std::string path_;  // of a Unix socket
  dev_t device_ = 0;  // of its file
  ino_t inode_ = 0;
};

// Owner and group may connect.
inline constexpr mode_t kSocketMode = 0660;

struct Listening {
  std::string address;              // as it was given, with the port that was picked
  std::string note;                 // what is not as it was asked for, in one line; "": nothing
  std::vector<Listener> listeners;  // a name may stand for several addresses
  bool beyond_loopback = false;     // other machines may reach one of them
};

// HOST:PORT or [IPv6]:PORT in its parts, without the brackets; views `address`. Nothing for a text
// that is neither. IPv6 without brackets is taken: its last colon is the one before the port.
struct HostAndPort {
  absl::string_view host;
  int port = 0;
};
std::optional<HostAndPort> SplitAddress(absl::string_view address);

struct FreeAddresses {
  void operator()(addrinfo* addresses) const { freeaddrinfo(addresses); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;
// Those of a host, for TCP. "localhost" is loopback everywhere (RFC 6761, 6.3), on a machine
// without /etc/hosts as well. `failed`: getaddrinfo's result; null unless it is 0.
Addresses AddressesOf(const std::string& host, int port, int& failed);

// `address`: HOST:PORT, [IPv6]:PORT or unix:/PATH; port 0 picks one. The host 0.0.0.0 means every
// address of the machine, IPv6 included where the machine has it; [::] means the same, and
// where there is no IPv6 it becomes 0.0.0.0, with a note.
// INVALID_ARGUMENT or UNAVAILABLE in one line, which ends with "(FLAG)", when that can't be had: in
// use, no address of this machine, no such name, no right. A Unix socket's file that no living
// server listens on is replaced; the folder is locked meanwhile, so of two servers one wins. Takes
// 5 s at most. `socket_mode`: the permissions of a Unix socket, before anybody can connect; who may
// write to it may.
absl::StatusOr<Listening> Listen(absl::string_view address, absl::string_view flag,
                                 mode_t socket_mode = kSocketMode);

}  // namespace quantd::net

#endif  // QUANTD_SERVER_NET_LISTEN_H_
