// See loop.h.
#include "server/http/loop.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <utility>

#include "server/http/answer.h"

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

// Whether everything has arrived at the peer's machine, the end included.
bool AllArrived(int socket) {
  int bytes = 0;
  return ioctl(socket, SIOCOUTQ, &bytes) != 0 || bytes == 0;
}

}  // namespace

Loop::Loop(Descriptor listener, const HttpLimits& limits, Answerer answer)
    : limits_(Affordable(limits)),
      answer_(std::move(answer)),
      listener_(std::move(listener)),
      buffer_(limits_.request_bytes, '\0') {}

Loop::~Loop() = default;

absl::Status Loop::Open() {
  epoll_ = Descriptor(epoll_create1(EPOLL_CLOEXEC));
  stop_ = Descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!epoll_.open() || !stop_.open() ||
      !Watch(EPOLL_CTL_ADD, listener_.get(), EPOLLIN, &listener_) ||
      !Watch(EPOLL_CTL_ADD, stop_.get(), EPOLLIN, &stop_)) {
    return absl::UnavailableError("no file descriptors left for HTTP (--http_listen)");
  }
  KeepSpares();
  return absl::OkStatus();
}

void Loop::Stop() { eventfd_write(stop_.get(), 1); }

void Loop::Run() {
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

int Loop::Wait(epoll_event* events, int size) const {
  const Clock::time_point until = std::min(next_deadline_, deaf_until_);
  int milliseconds = -1;
  if (until != Clock::time_point::max()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
    milliseconds = static_cast<int>(std::clamp<int64_t>(left.count(), 0, 60'000));
  }
  return epoll_wait(epoll_.get(), events, size, milliseconds);
}

void Loop::Accept() {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    Descriptor socket(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket.open()) {
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

void Loop::Add(Descriptor socket) {
  Connection& connection = connections_.emplace_back(std::move(socket), limits_.request_bytes);
  connection.place = std::prev(connections_.end());
  SetDeadline(connection, limits_.request_time);
  if (!Watch(EPOLL_CTL_ADD, connection.socket.get(), EPOLLIN, &connection)) {
    return Close(connection, Result::kReset);
  }
  // Most requests are there already, and what has its answer need not fear for its place.
  Serve(connection);
}

// Gives a descriptor to the process, so that the next accept may have it.
bool Loop::MakeRoom() {
  if (spares_.empty() && !connections_.empty()) Close(connections_.front(), Result::kReset);
  if (spares_.empty()) return false;
  spares_.pop_back();
  return true;
}

void Loop::KeepSpares() {
  while (spares_.size() < kSpares) {
    Descriptor spare(fcntl(stop_.get(), F_DUPFD_CLOEXEC, 0));
    if (!spare.open()) return;
    spares_.push_back(std::move(spare));
  }
}

void Loop::Serve(Connection& connection) {
  Result result = Result::kOpen;
  switch (connection.state) {
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

Loop::Result Loop::Read(Connection& connection) {
  const ssize_t count = recv(connection.socket.get(), buffer_.data(), buffer_.size(), 0);
  if (count < 0) return IsTryAgain(errno) ? Result::kOpen : Result::kClose;
  if (count == 0) return Result::kClose;  // no more will come, and it was no request yet
  if (!connection.request.Take({buffer_.data(), static_cast<size_t>(count)})) return Result::kOpen;
  connection.answer = answer_(connection.request);
  answer_bytes_ += connection.answer.size();
  connection.state = State::kWriting;
  SetDeadline(connection, limits_.answer_time);
  return Write(connection);
}

Loop::Result Loop::Write(Connection& connection) {
  const absl::string_view rest = absl::string_view(connection.answer).substr(connection.written);
  const int socket = connection.socket.get();
  const ssize_t count = send(socket, rest.data(), rest.size(), MSG_NOSIGNAL);
  if (count < 0 && !IsTryAgain(errno)) return Result::kClose;
  connection.written += static_cast<size_t>(std::max<ssize_t>(count, 0));
  if (connection.written < connection.answer.size()) {
    return Watch(EPOLL_CTL_MOD, socket, EPOLLOUT, &connection) ? Result::kOpen : Result::kReset;
  }
  answer_bytes_ -= connection.answer.size();
  std::string().swap(connection.answer);  // an assignment would keep its memory
  connection.state = State::kEnding;
  shutdown(socket, SHUT_WR);
  // By edges: a peer that has ended says so again and again, but not when the answer has arrived.
  if (!Watch(EPOLL_CTL_MOD, socket, EPOLLIN | EPOLLET, &connection)) return Result::kReset;
  return End(connection);
}

Loop::Result Loop::End(Connection& connection) {
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
Loop::Result Loop::Late(Connection& connection) const {
  const int socket = connection.socket.get();
  if (connection.state == State::kReading && connection.request.begun()) {
    const std::string answer = ErrorAnswer(408, connection.request.head());
    send(socket, answer.data(), answer.size(), MSG_NOSIGNAL);  // if it is taken at once
  }
  if (connection.state == State::kReading || AllArrived(socket)) return Result::kClose;
  return Result::kReset;
}

void Loop::Close(Connection& connection, Result how) {
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

void Loop::LookAtClock() {
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

void Loop::DropAnswers() {
  while (answer_bytes_ > limits_.answer_bytes) {
    const auto oldest = std::find_if(connections_.begin(), connections_.end(),
                                     [](const auto& one) { return one.state == State::kWriting; });
    if (oldest->answer.size() == answer_bytes_) return;  // the only one
    Close(*oldest, Result::kReset);
  }
}

void Loop::SetDeadline(Connection& connection, std::chrono::milliseconds from_now) {
  connection.deadline = Clock::now() + from_now;
  next_deadline_ = std::min(next_deadline_, connection.deadline);
}

bool Loop::Watch(int operation, int descriptor, uint32_t events, void* tag) const {
  epoll_event event = {};
  event.events = events;
  event.data.ptr = tag;
  return epoll_ctl(epoll_.get(), operation, descriptor, &event) == 0;
}

}  // namespace quantd::http
