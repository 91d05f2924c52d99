#include "server/net/probe.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "server/net/listen.h"
#include "server/net/unique_fd.h"

namespace quantd::net {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPatience{1'000};

// The preface and an empty SETTINGS frame; the response begins with a SETTINGS frame.
constexpr absl::string_view kHello("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", 24 + 9);
constexpr size_t kFrameHead = 9;
constexpr uint8_t kSettings = 4;
// The type of TLS handshake records.
constexpr uint8_t kTlsHandshake = 22;

UniqueFd Connect(const sockaddr* where, socklen_t size) {
  UniqueFd fd(socket(where->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const bool connects =
      fd.is_open() && (connect(fd.get(), where, size) == 0 || errno == EINPROGRESS);
  return connects ? std::move(fd) : UniqueFd();
}

UniqueFd ConnectTo(absl::string_view address) {
  if (absl::ConsumePrefix(&address, "unix:")) {
    absl::ConsumePrefix(&address, "//");
    sockaddr_un where{};
    where.sun_family = AF_UNIX;
    if (address.size() >= sizeof(where.sun_path)) return UniqueFd();
    std::memcpy(where.sun_path, address.data(), address.size());
    return Connect(reinterpret_cast<const sockaddr*>(&where), sizeof(where));
  }
  const HostAndPort parts = SplitAddress(address).value_or(HostAndPort());
  absl::string_view host = parts.host;
  // Both mean every address, and a machine may not have IPv6.
  if (host == "0.0.0.0" || host == "::") host = "127.0.0.1";
  int failed = 0;
  const Addresses found = AddressesOf(std::string(host), parts.port, failed);
  UniqueFd connected;
  for (const addrinfo* next = found.get(); next != nullptr && !connected.is_open();
       next = next->ai_next) {
    connected = Connect(next->ai_addr, next->ai_addrlen);
  }
  return connected;
}

// Errors of socket and connect that are caused by this process, not by the server.
bool IsOurs(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM ||
         error == EADDRNOTAVAIL;
}

bool WaitFor(int fd, short events, Clock::time_point until) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
  pollfd one = {fd, events, 0};
  return left.count() > 0 && poll(&one, 1, static_cast<int>(left.count())) == 1 &&
         (one.revents & events) != 0;
}

}  // namespace

Found Probe(const std::string& address, const std::string& tls_hello,
            std::chrono::milliseconds patience) {
  const absl::string_view hello = tls_hello.empty() ? kHello : absl::string_view(tls_hello);
  const Clock::time_point until = Clock::now() + patience;
  errno = 0;
  const UniqueFd connected = ConnectTo(address);
  const int fd = connected.get();
  if (fd < 0) return IsOurs(errno) ? Found::kUnknown : Found::kNobody;
  if (!WaitFor(fd, POLLOUT, until)) return Found::kNobody;
  const ssize_t sent = send(fd, hello.data(), hello.size(), MSG_NOSIGNAL);
  if (sent < 0 && (errno == EPIPE || errno == ECONNRESET)) return Found::kFull;
  if (sent != static_cast<ssize_t>(hello.size())) return Found::kNobody;
  std::array<uint8_t, kFrameHead> head{};
  for (size_t have = 0; have < head.size();) {
    if (!WaitFor(fd, POLLIN, until)) return Found::kNobody;
    const ssize_t count = recv(fd, head.data() + have, head.size() - have, 0);
    const bool closed = count == 0 || (count < 0 && errno == ECONNRESET);
    if (closed && have == 0) return Found::kFull;
    if (count <= 0) return Found::kNobody;
    have += static_cast<size_t>(count);
  }
  const bool expected = tls_hello.empty() ? head[3] == kSettings : head[0] == kTlsHandshake;
  return expected ? Found::kServer : Found::kNobody;
}

void Prober::Look() {
  if (!wanted_.exchange(false)) return;
  const Found found = Probe(address_, tls_hello_, kPatience);
  if (found == Found::kNobody) {
    failures_.fetch_add(1);
  } else if (found != Found::kUnknown) {
    failures_.store(0);
  }
}

}  // namespace quantd::net
