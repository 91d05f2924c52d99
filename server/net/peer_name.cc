#include "server/net/peer_name.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <cstring>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "server/net/unique_fd.h"

namespace quantd::net {
namespace {

Peer Ipv4(const in_addr& address, uint16_t port) {
  char text[INET_ADDRSTRLEN] = "?";
  inet_ntop(AF_INET, &address, text, sizeof(text));
  return {absl::HashOf(AF_INET, address.s_addr), absl::StrCat("ipv4:", text, ":", port)};
}

Peer Ipv6(const sockaddr_in6& address) {
  const uint16_t port = ntohs(address.sin6_port);
  if (IN6_IS_ADDR_V4MAPPED(&address.sin6_addr)) {
    in_addr v4{};
    std::memcpy(&v4, &address.sin6_addr.s6_addr[12], sizeof(v4));
    return Ipv4(v4, port);
  }
  char text[INET6_ADDRSTRLEN] = "?";
  inet_ntop(AF_INET6, &address.sin6_addr, text, sizeof(text));
  uint64_t network = 0;
  std::memcpy(&network, address.sin6_addr.s6_addr, sizeof(network));
  return {absl::HashOf(AF_INET6, network), absl::StrCat("ipv6:[", text, "]:", port)};
}

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif
constexpr auto kPidFileSystem = 0x50494446;  // PID_FS_MAGIC, which is missing in old headers

// A process of another PID namespace, such as another container's, has no number here. Since Linux
// 6.9 the inode of its pidfd is unique, in a special file system; before that, all such processes
// are one peer. 0: not available.
uint64_t HiddenProcess(int fd) {
  int number = -1;
  socklen_t size = sizeof(number);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &number, &size) != 0) return 0;
  const UniqueFd process(number);
  struct statfs system{};
  if (fstatfs(process.get(), &system) != 0 || system.f_type != kPidFileSystem) return 0;
  struct stat status{};
  return fstat(process.get(), &status) == 0 ? status.st_ino : 0;
}

Peer Local(int fd) {
  ucred credentials{};
  socklen_t size = sizeof(credentials);
  getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size);
  const uint64_t hidden = credentials.pid == 0 ? HiddenProcess(fd) : 0;
  return {absl::HashOf(AF_UNIX, credentials.pid, hidden),
          absl::StrCat("unix:pid:", credentials.pid,
                       hidden == 0 ? std::string() : absl::StrCat(",pidfd:", hidden))};
}

}  // namespace

Peer PeerOf(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return {0, "?"};
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    return Ipv4(v4.sin_addr, ntohs(v4.sin_port));
  }
  if (address.ss_family == AF_INET6) return Ipv6(reinterpret_cast<const sockaddr_in6&>(address));
  return Local(fd);
}

}  // namespace quantd::net
