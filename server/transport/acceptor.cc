#include "server/transport/acceptor.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <utility>

#include "server/transport/connection.h"
#include "server/transport/connection_set.h"
#include "server/transport/notes.h"

namespace quantd::transport {
namespace {

constexpr int kAtOnce = 64;
constexpr int kMostWaiting = 4096;  // the same as in net/listen.cc
// A pause if the system has no memory or no descriptors at all, even for this.
constexpr std::chrono::milliseconds kRest{50};

int OpenSpare() { return open("/dev/null", O_RDONLY | O_CLOEXEC); }

}  // namespace

Acceptor::Acceptor(Transport& transport, loop::Loop& loop, net::Listener listener)
    : transport_(transport), loop_(loop), listener_(std::move(listener)), spare_(OpenSpare()) {}

Acceptor::~Acceptor() {
  loop_.timers().Clear(*this);
  if (spare_ >= 0) close(spare_);
}

void Acceptor::Start() { watched_ = loop_.Watch(listener_.fd(), EPOLLIN, *this); }

void Acceptor::Stop() {
  // Accepts all that wait already, because closing the socket would refuse them.
  for (int i = 0; i < kMostWaiting && listener_.fd() >= 0; ++i) {
    if (!AcceptOne()) break;
  }
  if (std::exchange(watched_, false)) loop_.Unwatch(listener_.fd());
  loop_.timers().Clear(*this);
  listener_.Close();
}

void Acceptor::OnReady(uint32_t) {
  for (int i = 0; i < kAtOnce; ++i) {
    if (!AcceptOne()) return;
  }
}

// Returns false if there is nothing more to do now.
bool Acceptor::AcceptOne() {
  const int fd = accept4(listener_.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) {
    if (errno == EAGAIN) return false;
    if (errno == EMFILE || errno == ENFILE) return RefuseOne();
    if (errno == ENOBUFS || errno == ENOMEM) Rest();
    return errno == EINTR || errno == ECONNABORTED;
  }
  TransportContext& context = transport_.context();
  net::Peer peer = net::PeerOf(fd);
  const bool secure = context.certificates != nullptr && !listener_.is_unix();
  if (Connection::Open(transport_.NextSet(), fd, peer, secure)) {
    context.counters.accepted.fetch_add(1, std::memory_order_relaxed);
  } else {
    context.counters.CountEnd(ConnectionEnd::kTooMany);
    NoteAbuse(context.counters, AbuseAction::kConnectionRefused, peer.name);
  }
  return true;
}

// Out of descriptors: the spare one is used to accept the connection and close it at once, which
// tells the client. If it stayed in the queue, the loop would run for ever and all clients would
// wait.
bool Acceptor::RefuseOne() {
  Counters& counters = transport_.context().counters;
  counters.CountEnd(ConnectionEnd::kTooMany);
  if (spare_ >= 0) close(std::exchange(spare_, -1));
  const int fd = accept4(listener_.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  NoteAbuse(counters, AbuseAction::kDescriptorsExhausted, fd < 0 ? "" : net::PeerOf(fd).name);
  if (fd >= 0) close(fd);
  spare_ = OpenSpare();
  if (fd >= 0 && spare_ >= 0) return true;
  Rest();
  return false;
}

void Acceptor::Rest() {
  if (std::exchange(watched_, false)) loop_.Unwatch(listener_.fd());
  loop_.timers().Set(*this, loop::Clock::now() + kRest);
}

void Acceptor::Fire() {
  if (spare_ < 0) spare_ = OpenSpare();
  Start();
}

}  // namespace quantd::transport
