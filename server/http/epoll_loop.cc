// See epoll_loop.h.
#include "server/http/epoll_loop.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <netdb.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/http/response.h"
#include "server/log/log.h"

namespace quantd::http {
namespace {

// Descriptors that nobody else gets: when the process has run out of them, this many connections
// are still answered at a time.
constexpr size_t kSpares = 4;
// Accepted in one turn, so that a flood of connections does not hold up those that are there.
constexpr int kAcceptsPerTurn = 32;
// A pause after an accept that failed for want of memory, say: trying on would take a whole CPU.
constexpr std::chrono::milliseconds kDeafFor{50};
// What a peer may send on when it has its answer; a POST of that size still gets to see its 405.
constexpr size_t kThrownAwayBytes = 256 << 10;

// With a quarter of the process' descriptors at most: connections to gRPC need them, too.
HttpLimits Affordable(HttpLimits limits) {
  rlimit descriptors = {};
  if (getrlimit(RLIMIT_NOFILE, &descriptors) == 0) {
    limits.connections = std::min<size_t>(limits.connections, descriptors.rlim_cur / 4);
  }
  limits.connections = std::max<size_t>(limits.connections, 1);
  return limits;
}

bool IsTryAgain(int error) { return error == EAGAIN || error == EINTR; }

// The peer's address, for the log.
std::string NameOf(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  auto* const peer = reinterpret_cast<sockaddr*>(&address);
  if (getpeername(socket, peer, &size) != 0 ||
      getnameinfo(peer, size, host.data(), host.size(), port.data(), port.size(),
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "?";
  }
  const bool v6 = address.ss_family == AF_INET6;
  return absl::StrCat(v6 ? "ipv6:[" : "ipv4:", host.data(), v6 ? "]:" : ":", port.data());
}

// Whether everything has arrived at the peer's machine, the end included.
bool AllArrived(int socket) {
  int bytes = 0;
  return ioctl(socket, SIOCOUTQ, &bytes) != 0 || bytes == 0;
}

}  // namespace

EpollLoop::EpollLoop(Descriptor listener, const HttpLimits& limits, const HttpAccess& access,
                     Answerer answer)
    : limits_(Affordable(limits)),
      access_(access),
      answer_(std::move(answer)),
      listener_(std::move(listener)),
      buffer_(limits_.request_bytes, '\0') {}

EpollLoop::~EpollLoop() = default;

absl::Status EpollLoop::Open() {
  epoll_ = Descriptor(epoll_create1(EPOLL_CLOEXEC));
  stop_ = Descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!epoll_.is_open() || !stop_.is_open() ||
      !Watch(EPOLL_CTL_ADD, listener_.get(), EPOLLIN, &listener_) ||
      !Watch(EPOLL_CTL_ADD, stop_.get(), EPOLLIN, &stop_)) {
    return absl::UnavailableError("no file descriptors left for HTTP (--http_listen)");
  }
  KeepSpares();
  return absl::OkStatus();
}

void EpollLoop::Stop() { eventfd_write(stop_.get(), 1); }

void EpollLoop::Run() {
  std::array<epoll_event, 64> events;
  while (true) {
    const int count = Wait(events.data(), static_cast<int>(events.size()));
    bool accept = false;
    for (int i = 0; i < count; ++i) {
      void* const tag = events[i].data.ptr;
      if (tag == &stop_) return;
      if (tag == &listener_) {
        accept = true;
      } else {
        Serve(*static_cast<Connection*>(tag));
      }
    }
    // These close connections of others, so they wait until no event is left that names one.
    LookAtClock();
    if (accept) Accept();
    DropAnswers();
    KeepSpares();
  }
}

int EpollLoop::Wait(epoll_event* events, int size) const {
  const Clock::time_point until = std::min(next_deadline_, deaf_until_);
  int milliseconds = -1;
  if (until != Clock::time_point::max()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
    milliseconds = static_cast<int>(std::clamp<int64_t>(left.count(), 0, 60'000));
  }
  return epoll_wait(epoll_.get(), events, size, milliseconds);
}

void EpollLoop::Accept() {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    Descriptor socket(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket.is_open()) {
      if (connections_.size() >= limits_.connections) Close(connections_.front(), Result::kReset);
      Add(std::move(socket));
      continue;
    }
    const int error = errno;
    if (error == EAGAIN) return;
    if (error == EINTR || error == ECONNABORTED) continue;
    if ((error == EMFILE || error == ENFILE) && MakeRoom()) continue;
    Watch(EPOLL_CTL_MOD, listener_.get(), 0, &listener_);
    deaf_until_ = Clock::now() + kDeafFor;
    return;
  }
}

void EpollLoop::Add(Descriptor socket) {
  Connection& connection = connections_.emplace_back(std::move(socket), limits_.request_bytes);
  connection.place = std::prev(connections_.end());
  if (access_.certificates != nullptr) {
    connection.state = State::kShaking;
    connection.tls = access::Session::Accept(*access_.certificates, access::Protocol::kHttp,
                                             connection.socket.get());
    if (connection.tls == nullptr) return Close(connection, Result::kReset);
  }
  SetDeadline(connection, limits_.request_time);
  if (!Watch(EPOLL_CTL_ADD, connection.socket.get(), EPOLLIN, &connection)) {
    return Close(connection, Result::kReset);
  }
  // Most requests are there already, and what has its answer need not fear for its place.
  Serve(connection);
}

// Gives a descriptor to the process, so that the next accept may have it.
bool EpollLoop::MakeRoom() {
  if (spares_.empty() && !connections_.empty()) Close(connections_.front(), Result::kReset);
  if (spares_.empty()) return false;
  spares_.pop_back();
  return true;
}

void EpollLoop::KeepSpares() {
  while (spares_.size() < kSpares) {
    Descriptor spare(fcntl(stop_.get(), F_DUPFD_CLOEXEC, 0));
    if (!spare.is_open()) return;
    spares_.push_back(std::move(spare));
  }
}

void EpollLoop::Serve(Connection& connection) {
  Result result = Result::kOpen;
  switch (connection.state) {
    case State::kShaking:
      result = Shake(connection);
      break;
    case State::kReading:
      result = Read(connection);
      break;
    case State::kWriting:
      result = Write(connection);
      break;
    case State::kEnding:
      result = End(connection);
      break;
  }
  if (result != Result::kOpen) Close(connection, result);
}

ssize_t EpollLoop::Receive(const Connection& connection) {
  if (connection.tls == nullptr) {
    return recv(connection.socket.get(), buffer_.data(), buffer_.size(), 0);
  }
  const iovec piece{buffer_.data(), buffer_.size()};
  return connection.tls->Read({&piece, 1});
}

ssize_t EpollLoop::Send(const Connection& connection, absl::string_view bytes) {
  if (connection.tls == nullptr || connection.tls->plain_text()) {
    return send(connection.socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  const iovec piece{const_cast<char*>(bytes.data()), bytes.size()};
  return connection.tls->Write({&piece, 1});
}

EpollLoop::Result EpollLoop::Shake(Connection& connection) {
  access::Session& tls = *connection.tls;
  switch (tls.Handshake()) {
    case access::Session::Step::kAgain: {
      const uint32_t events = tls.wants_write() ? EPOLLOUT : EPOLLIN;
      const bool watched = Watch(EPOLL_CTL_MOD, connection.socket.get(), events, &connection);
      return watched ? Result::kOpen : Result::kReset;
    }
    case access::Session::Step::kGone:
      return Result::kClose;
    case access::Session::Step::kRefused:
      RefuseHandshake(connection);
      return StartEnding(connection);
    case access::Session::Step::kDone:
      break;
  }
  connection.state = State::kReading;
  if (!Watch(EPOLL_CTL_MOD, connection.socket.get(), EPOLLIN, &connection)) return Result::kReset;
  return Read(connection);
}

void EpollLoop::RefuseHandshake(Connection& connection) {
  const access::Session& tls = *connection.tls;
  if (tls.plain_text()) {
    Send(connection, Response(400, kPlainText, "this port speaks TLS: https\n", false));
  }
  static log::Repeated lines(log::Level::kWarn, "TLS handshake of HTTP refused");
  lines.Write([&] {
    return log::Fields{{"reason", tls.reason()}, {"peer", NameOf(connection.socket.get())}};
  });
}

EpollLoop::Result EpollLoop::Read(Connection& connection) {
  const access::Session* const tls = connection.tls.get();
  do {
    const ssize_t count = Receive(connection);
    if (count < 0 && !IsTryAgain(errno)) return Result::kClose;
    if (count == 0) return Result::kClose;  // no more will come, and it was no request yet
    if (count > 0) connection.request.Take({buffer_.data(), static_cast<size_t>(count)});
    // What TLS has read the socket does not tell of.
  } while (connection.request.status() == 0 && tls != nullptr && tls->more_to_read());
  if (connection.request.status() == 0) return Result::kOpen;
  connection.answer = answer_(connection.request, tls != nullptr && tls->has_client_certificate());
  answer_bytes_ += connection.answer.size();
  connection.state = State::kWriting;
  SetDeadline(connection, limits_.answer_time);
  return Write(connection);
}

EpollLoop::Result EpollLoop::Write(Connection& connection) {
  const absl::string_view rest = absl::string_view(connection.answer).substr(connection.written);
  const int socket = connection.socket.get();
  const ssize_t count = Send(connection, rest);
  if (count < 0 && !IsTryAgain(errno)) return Result::kClose;
  connection.written += static_cast<size_t>(std::max<ssize_t>(count, 0));
  if (connection.written < connection.answer.size()) {
    return Watch(EPOLL_CTL_MOD, socket, EPOLLOUT, &connection) ? Result::kOpen : Result::kReset;
  }
  answer_bytes_ -= connection.answer.size();
  std::string().swap(connection.answer);  // an assignment would keep its memory
  return StartEnding(connection);
}

EpollLoop::Result EpollLoop::StartEnding(Connection& connection) {
  const int socket = connection.socket.get();
  connection.state = State::kEnding;
  if (connection.tls != nullptr) connection.tls->SayEnd();
  shutdown(socket, SHUT_WR);
  // By edges: a peer that has ended says so again and again, but not when the answer has arrived.
  if (!Watch(EPOLL_CTL_MOD, socket, EPOLLIN | EPOLLET, &connection)) return Result::kReset;
  return End(connection);
}

EpollLoop::Result EpollLoop::End(Connection& connection) {
  const int socket = connection.socket.get();
  ssize_t count;
  while ((count = recv(socket, buffer_.data(), buffer_.size(), 0)) > 0) {
    connection.thrown_away += static_cast<size_t>(count);
    if (connection.thrown_away > kThrownAwayBytes) return Result::kReset;
  }
  if (count < 0) return IsTryAgain(errno) ? Result::kOpen : Result::kClose;
  return AllArrived(socket) ? Result::kClose : Result::kOpen;
}

// What becomes of a connection whose deadline has come.
EpollLoop::Result EpollLoop::Late(Connection& connection) const {
  const int socket = connection.socket.get();
  if (connection.state == State::kReading && connection.request.begun()) {
    const std::string answer = ErrorResponse(408, connection.request.head());
    Send(connection, answer);  // if it is taken at once
  }
  const bool begins = connection.state == State::kShaking || connection.state == State::kReading;
  if (begins || AllArrived(socket)) return Result::kClose;
  return Result::kReset;
}

void EpollLoop::Close(Connection& connection, Result how) {
  Descriptor socket = std::move(connection.socket);
  answer_bytes_ -= connection.answer.size();
  connections_.erase(connection.place);
  if (how == Result::kReset) {
    // What has not been taken is dropped; the kernel would go on to offer it for minutes.
    const linger none = {.l_onoff = 1, .l_linger = 0};
    setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &none, sizeof(none));
  }
  // The socket is closed, and its descriptor kept, in one step: no other thread gets in between.
  if (spares_.size() < kSpares && dup3(stop_.get(), socket.get(), O_CLOEXEC) >= 0) {
    spares_.push_back(std::move(socket));
  }
}

void EpollLoop::LookAtClock() {
  const Clock::time_point now = Clock::now();
  if (deaf_until_ <= now) {
    deaf_until_ = Clock::time_point::max();
    Watch(EPOLL_CTL_MOD, listener_.get(), EPOLLIN, &listener_);
  }
  if (now < next_deadline_) return;
  next_deadline_ = Clock::time_point::max();
  for (auto next = connections_.begin(); next != connections_.end();) {
    Connection& connection = *next++;
    if (connection.deadline <= now) {
      Close(connection, Late(connection));
    } else {
      next_deadline_ = std::min(next_deadline_, connection.deadline);
    }
  }
}

void EpollLoop::DropAnswers() {
  while (answer_bytes_ > limits_.answer_bytes) {
    const auto oldest = std::find_if(connections_.begin(), connections_.end(),
                                     [](const auto& one) { return one.state == State::kWriting; });
    if (oldest->answer.size() == answer_bytes_) return;  // the only one
    Close(*oldest, Result::kReset);
  }
}

void EpollLoop::SetDeadline(Connection& connection, std::chrono::milliseconds from_now) {
  connection.deadline = Clock::now() + from_now;
  next_deadline_ = std::min(next_deadline_, connection.deadline);
}

bool EpollLoop::Watch(int operation, int descriptor, uint32_t events, void* tag) const {
  epoll_event event = {};
  event.events = events;
  event.data.ptr = tag;
  return epoll_ctl(epoll_.get(), operation, descriptor, &event) == 0;
}

}  // namespace quantd::http
