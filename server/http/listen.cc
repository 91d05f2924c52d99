// See listen.h.
#include "server/http/listen.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace quantd::http {
namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

// 0, or an errno.
int ListenOn(const addrinfo& address, Descriptor& listener) {
  Descriptor fd(socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.open()) return errno;
  // A port whose last connections are in TIME_WAIT is free. Not SO_REUSEPORT: with that, a port
  // that another process listens on would be, too.
  const int yes = 1, no = 0;
  if (setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) != 0) return errno;
  // [::] means every address, IPv4 as well, whatever net.ipv6.bindv6only says.
  if (address.ai_family == AF_INET6 &&
      setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no)) != 0) {
    return errno;
  }
  if (bind(fd.get(), address.ai_addr, address.ai_addrlen) != 0) return errno;
  if (listen(fd.get(), SOMAXCONN) != 0) return errno;
  listener = std::move(fd);
  return 0;
}

int PortOf(const Descriptor& listener) {
  sockaddr_storage bound = {};
  socklen_t size = sizeof(bound);
  getsockname(listener.get(), reinterpret_cast<sockaddr*>(&bound), &size);
  return ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&bound)->sin6_port
                                           : reinterpret_cast<sockaddr_in*>(&bound)->sin_port);
}

}  // namespace

absl::StatusOr<Listener> Listen(absl::string_view address) {
  const size_t colon = address.rfind(':');
  int port = -1;
  if (colon == absl::string_view::npos || colon == 0 ||
      !absl::SimpleAtoi(address.substr(colon + 1), &port) || port < 0 || port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", address, "' is not HOST:PORT (--http_listen)"));
  }
  const absl::string_view given = address.substr(0, colon);
  const bool brackets = given.size() > 2 && given.front() == '[' && given.back() == ']';
  const std::string host(brackets ? given.substr(1, given.size() - 2) : given);
  const auto unavailable = [&](absl::string_view why) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", address, ": ", why, " (--http_listen)"));
  };

  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int wrong = getaddrinfo(host.c_str(), absl::StrCat(port).c_str(), &hints, &found);
  const Addresses addresses(found, freeaddrinfo);
  if (wrong == EAI_SYSTEM) return unavailable(std::generic_category().message(errno));
  if (wrong != 0) return unavailable(gai_strerror(wrong));

  Listener listener;
  int error = EADDRNOTAVAIL;
  for (const addrinfo* one = addresses.get(); one != nullptr; one = one->ai_next) {
    error = ListenOn(*one, listener.socket);
    // localhost is ::1 as well, which a machine without IPv6 lacks. A port that is busy on one of
    // them must not hide behind the other.
    if (error != EADDRNOTAVAIL && error != EAFNOSUPPORT) break;
  }
  if (error != 0) return unavailable(std::generic_category().message(error));
  listener.address = absl::StrCat(given, ":", PortOf(listener.socket));
  return listener;
}

}  // namespace quantd::http
