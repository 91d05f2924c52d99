// Listening sockets: TCP on IPv4 and IPv6, and Unix sockets.
//
//   absl::StatusOr<Listening> listening = Listen("127.0.0.1:0", "--listen");
//   listening->address == "127.0.0.1:41234"
#ifndef QUANTD_SERVER_NET_LISTEN_H_
#define QUANTD_SERVER_NET_LISTEN_H_

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace quantd::net {

// A non-blocking socket that listens. The destructor closes it and removes a Unix socket's file,
// unless another file has taken its place meanwhile.
class Listener {
 public:
  Listener(int fd, std::string path);
  Listener(Listener&& other) noexcept;
  Listener& operator=(Listener&&) = delete;
  ~Listener();

  int fd() const { return fd_; }
  bool is_unix() const { return !path_.empty(); }
  // Gives up ownership of the socket. REQUIRES: not a Unix socket.
  int Release() { return std::exchange(fd_, -1); }
  // Accepts no more connections. Connections in its queue are refused.
  void Close();

 private:
  int fd_;
  std::string path_;  // of a Unix socket
  dev_t device_ = 0;  // of its file
  ino_t inode_ = 0;
};

// The owner and the group may connect.
inline constexpr mode_t kSocketMode = 0660;

struct Listening {
  std::string address;              // as given, with the port that was picked
  std::string note;                 // a difference from what was asked for, in one line; or ""
  std::vector<Listener> listeners;  // a name may stand for several addresses
  bool beyond_loopback = false;     // other machines may reach one of them
};

// The parts of HOST:PORT or [IPv6]:PORT, without the brackets; views `address`. nullopt for any
// other text. IPv6 without brackets is accepted: its last colon is the one before the port.
struct HostAndPort {
  absl::string_view host;
  int port = 0;
};
std::optional<HostAndPort> SplitAddress(absl::string_view address);

// `address`: HOST:PORT, [IPv6]:PORT or unix:/PATH; port 0 picks one. The host 0.0.0.0 means every
// address of the machine, IPv6 included if the machine has it; [::] means the same, and without
// IPv6 it becomes 0.0.0.0, with a note. Returns INVALID_ARGUMENT or UNAVAILABLE in one line that
// ends with "(FLAG)" if the address is in use or is not of this machine, if the name is unknown, or
// if the process has no permission. A Unix socket's file is replaced if no living server listens on
// it; the folder is locked meanwhile, so of two servers one wins. Takes at most 5 s. `socket_mode`:
// the permissions of a Unix socket, set before anybody can connect; write permission allows
// connecting.
absl::StatusOr<Listening> Listen(absl::string_view address, absl::string_view flag,
                                 mode_t socket_mode = kSocketMode);

}  // namespace quantd::net

#endif  // QUANTD_SERVER_NET_LISTEN_H_
