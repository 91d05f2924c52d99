#include "peer.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <chrono>

namespace quantd::http {

Peer::Peer(absl::string_view address, int receive_bytes, int from) {
  const size_t colon = address.rfind(':');
  std::string host(address.substr(0, colon));
  if (host.front() == '[') host = host.substr(1, host.size() - 2);
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), std::string(address.substr(colon + 1)).c_str(), &hints, &found) !=
      0) {
    return;
  }
  socket_ = UniqueFd(socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (receive_bytes > 0) {
    setsockopt(socket_.get(), SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof(receive_bytes));
  }
  if (from != 0) {
    sockaddr_in own = {};
    own.sin_family = AF_INET;
    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + static_cast<uint32_t>(from));
    bind(socket_.get(), reinterpret_cast<const sockaddr*>(&own), sizeof(own));
  }
  const timeval patience = {.tv_sec = 20, .tv_usec = 0};
  setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
  connected_ = connect(socket_.get(), found->ai_addr, found->ai_addrlen) == 0;
  freeaddrinfo(found);
}

bool Peer::Send(absl::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t count = send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

void Peer::EndSending() const { shutdown(socket_.get(), SHUT_WR); }

std::string Peer::ReadToEnd() const {
  std::string received;
  char piece[4096];
  ssize_t count;
  while ((count = recv(socket_.get(), piece, sizeof(piece), 0)) > 0) {
    received.append(piece, static_cast<size_t>(count));
  }
  return received;
}

bool Peer::EndsWithin(int milliseconds) const {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
  char piece[4096];
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    pollfd readable = {.fd = socket_.get(), .events = POLLIN, .revents = 0};
    if (left.count() < 0 || poll(&readable, 1, static_cast<int>(left.count())) <= 0) return false;
    if (recv(socket_.get(), piece, sizeof(piece), 0) <= 0) return true;
  }
}

std::string Ask(absl::string_view address, absl::string_view bytes) {
  const Peer peer(address);
  peer.Send(bytes);
  return peer.ReadToEnd();
}

}  // namespace quantd::http
