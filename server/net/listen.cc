#include "server/net/listen.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "server/net/unique_fd.h"

namespace quantd::net {

std::optional<HostAndPort> SplitAddress(absl::string_view address) {
  const size_t colon = address.rfind(':');
  HostAndPort parts;
  if (colon == absl::string_view::npos || colon == 0 ||
      !absl::SimpleAtoi(address.substr(colon + 1), &parts.port) || parts.port < 0 ||
      parts.port > 65535) {
    return std::nullopt;
  }
  parts.host = address.substr(0, colon);
  if (absl::ConsumePrefix(&parts.host, "[")) absl::ConsumeSuffix(&parts.host, "]");
  return parts;
}

namespace {

// The most connections in the queue of the socket; net.core.somaxconn may limit it further.
constexpr int kBacklog = 4096;
// The longest time that a Unix socket's folder may be locked by others: 5 s.
constexpr int kLockAttempts = 100;
constexpr std::chrono::milliseconds kLockPause{50};

absl::Status Refusal(absl::string_view address, absl::string_view flag, absl::string_view why) {
  return absl::UnavailableError(
      absl::StrCat("cannot listen on ", address, ": ", why, " (", flag, ")"));
}

absl::string_view Why(int error) {
  switch (error) {
    case EADDRINUSE:
      return "the address is in use";
    case EADDRNOTAVAIL:
      return "not an address of this machine";
    case EACCES:
      return "permission denied";
    default:
      return std::strerror(error);
  }
}

int PortOf(int fd) {
  sockaddr_storage bound{};
  socklen_t size = sizeof(bound);
  getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &size);
  return ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(bound).sin6_port
                                           : reinterpret_cast<sockaddr_in&>(bound).sin_port);
}

bool IsLoopback(const sockaddr* where) {
  if (where->sa_family == AF_INET6) {
    const in6_addr& v6 = reinterpret_cast<const sockaddr_in6*>(where)->sin6_addr;
    return IN6_IS_ADDR_LOOPBACK(&v6);
  }
  // 127.0.0.0/8
  return ntohl(reinterpret_cast<const sockaddr_in*>(where)->sin_addr.s_addr) >> 24 == 127;
}

struct FreeAddresses {
  void operator()(addrinfo* addresses) const { freeaddrinfo(addresses); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;
// The TCP addresses of a host, with port 0. "localhost" is always loopback (RFC 6761, 6.3), even on
// a machine without /etc/hosts. `failed` is getaddrinfo's result; the addresses are null unless it
// is 0.
Addresses AddressesOf(const std::string& host, int& failed) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICSERV;  // without AI_PASSIVE: an empty name means loopback
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  failed = getaddrinfo(host == "localhost" ? nullptr : host.c_str(), "0", &hints, &found);
  return Addresses(failed == 0 ? found : nullptr);
}

// A socket that is bound to `where` and listens; or -1 with errno.
int Bind(const sockaddr* where, socklen_t size, bool both_families, mode_t socket_mode = 0) {
  UniqueFd made(socket(where->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int fd = made.get();
  if (fd < 0) return -1;
  if (where->sa_family != AF_UNIX) {
    // Not SO_REUSEPORT, which would make a port of another process look free.
    const int yes = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  }
  if (where->sa_family == AF_INET6) {
    const int only = both_families ? 0 : 1;
    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof(only));
  }
  // Nobody can connect before it listens, so the permissions are set first.
  const auto permit = [&] {
    return where->sa_family != AF_UNIX ||
           chmod(reinterpret_cast<const sockaddr_un*>(where)->sun_path, socket_mode) == 0;
  };
  if (bind(fd, where, size) == 0 && permit() && listen(fd, kBacklog) == 0) return made.Release();
  return -1;
}

absl::StatusOr<Listening> ListenTcp(absl::string_view address, absl::string_view flag) {
  const std::optional<HostAndPort> parts = SplitAddress(address);
  if (!parts.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(flag, " is '", address, "', must be HOST:PORT"));
  }
  const absl::string_view host = parts->host;
  int port = parts->port;
  const bool any = host == "0.0.0.0" || host == "::";

  int failed = 0;
  const Addresses found = AddressesOf(any ? "::" : std::string(host), failed);
  if (failed != 0) return Refusal(address, flag, gai_strerror(failed));

  Listening listening;
  int error = 0;
  bool only_v4 = false;
  const auto bind_to = [&](sockaddr* where, socklen_t size) {
    (where->sa_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(where)->sin6_port
                                  : reinterpret_cast<sockaddr_in*>(where)->sin_port) =
        htons(static_cast<uint16_t>(port));
    const int fd = Bind(where, size, any);
    if (fd < 0) {
      error = errno;
      return false;
    }
    port = PortOf(fd);  // all addresses of a name use the same port
    listening.listeners.emplace_back(fd, "");
    listening.beyond_loopback |= !IsLoopback(where);
    return true;
  };
  for (const addrinfo* next = found.get(); next != nullptr; next = next->ai_next) {
    // "localhost" is often both ::1 and 127.0.0.1; a machine may have only one of them.
    if (!bind_to(next->ai_addr, next->ai_addrlen) && error == EADDRINUSE) break;
  }
  if (any && listening.listeners.empty() && (error == EAFNOSUPPORT || error == EADDRNOTAVAIL)) {
    sockaddr_storage v4{};
    v4.ss_family = AF_INET;
    only_v4 = bind_to(reinterpret_cast<sockaddr*>(&v4), sizeof(sockaddr_in));
  }
  if (listening.listeners.empty() || error == EADDRINUSE) return Refusal(address, flag, Why(error));
  listening.address = absl::StrCat(address.substr(0, address.rfind(':')), ":", port);
  if (only_v4 && host == "::") {
    listening.address = absl::StrCat("0.0.0.0:", port);
    listening.note = absl::StrCat("this machine has no IPv6: on ", listening.address,
                                  " instead of ", address, " (", flag, ")");
  }
  return listening;
}

// Only ECONNREFUSED proves that nobody listens: a server that can't check must not take the place.
bool NobodyListens(const sockaddr_un& where) {
  const UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  return fd.is_open() &&
         connect(fd.get(), reinterpret_cast<const sockaddr*>(&where), sizeof(where)) != 0 &&
         errno == ECONNREFUSED;
}

// Any user who can read a folder may lock it, for any time.
bool LockFolder(int folder) {
  for (int i = 0; i < kLockAttempts; ++i) {
    if (flock(folder, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return true;
    std::this_thread::sleep_for(kLockPause);
  }
  return false;
}

absl::StatusOr<Listening> ListenUnix(absl::string_view address, absl::string_view path_text,
                                     absl::string_view flag, mode_t socket_mode) {
  absl::ConsumePrefix(&path_text, "//");  // unix:///run/quantd.sock
  const std::string path(path_text);
  sockaddr_un where{};
  where.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(where.sun_path)) {
    return absl::InvalidArgumentError(absl::StrCat(flag, " is '", address, "': the path has ",
                                                   path.size(), " characters, must have 1 to ",
                                                   sizeof(where.sun_path) - 1));
  }
  std::memcpy(where.sun_path, path.data(), path.size());
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const UniqueFd locked(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!locked.is_open()) {
    return Refusal(address, flag, absl::StrCat(folder, ": ", std::strerror(errno)));
  }
  if (!LockFolder(locked.get())) {
    return Refusal(address, flag, absl::StrCat(folder, " is locked by another process"));
  }
  struct stat info{};
  if (lstat(path.c_str(), &info) == 0) {
    if (!S_ISSOCK(info.st_mode))
      return Refusal(address, flag, "a file that is not a socket is there");
    if (!NobodyListens(where)) return Refusal(address, flag, "another server is listening there");
    if (unlink(path.c_str()) != 0) return Refusal(address, flag, Why(errno));
  }
  const int fd = Bind(reinterpret_cast<const sockaddr*>(&where), sizeof(where), false, socket_mode);
  if (fd < 0) return Refusal(address, flag, Why(errno));
  Listening listening;
  listening.address = std::string(address);
  listening.listeners.emplace_back(fd, path);
  return listening;
}

}  // namespace

Listener::Listener(Listener&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      path_(std::exchange(other.path_, "")),
      device_(other.device_),
      inode_(other.inode_) {}

Listener::Listener(int fd, std::string path) : fd_(fd), path_(std::move(path)) {
  struct stat info{};
  if (path_.empty() || lstat(path_.c_str(), &info) != 0) return;
  device_ = info.st_dev;
  inode_ = info.st_ino;
}

Listener::~Listener() { Close(); }

void Listener::Close() {
  if (fd_ < 0) return;
  struct stat info{};
  if (!path_.empty() && lstat(path_.c_str(), &info) == 0 && info.st_dev == device_ &&
      info.st_ino == inode_) {
    unlink(path_.c_str());
  }
  close(std::exchange(fd_, -1));
}

absl::StatusOr<Listening> Listen(absl::string_view address, absl::string_view flag,
                                 mode_t socket_mode) {
  absl::string_view path = address;
  if (absl::ConsumePrefix(&path, "unix:")) return ListenUnix(address, path, flag, socket_mode);
  return ListenTcp(address, flag);
}

}  // namespace quantd::net
