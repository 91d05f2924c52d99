#include "server/http/connections.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

#include "absl/strings/string_view.h"
#include "server/http/response.h"
#include "server/log/log.h"
#include "server/net/peer_name.h"

namespace quantd::http {
namespace {

// Reserved descriptors: when the process has no others left, this number of connections can still
// be answered at the same time.
constexpr size_t kSpares = 4;
// How long connections are served before newcomers are accepted, which takes much less time than a
// handshake or a page.
constexpr std::chrono::milliseconds kServeFor{2};
// The most accepts per iteration.
constexpr int kAcceptsPerIteration = 256;
// A pause after a failed accept, because of low memory for example: immediate retries would use a
// whole CPU.
constexpr std::chrono::milliseconds kDeafFor{50};
// How much a peer may send after its response; a POST of up to that size still receives its 405.
constexpr size_t kThrownAwayBytes = 256 << 10;
// TLS records without use, as counted by the session; a request that comes byte by byte is one.
constexpr int kMostCrumbs = 4'000;

// At most a quarter of the process's descriptors, because gRPC connections need them, too.
HttpLimits Affordable(HttpLimits limits) {
  rlimit descriptors = {};
  if (getrlimit(RLIMIT_NOFILE, &descriptors) == 0) {
    limits.connections = std::min<size_t>(limits.connections, descriptors.rlim_cur / 4);
  }
  limits.connections = std::max<size_t>(limits.connections, 1);
  return limits;
}

bool IsTryAgain(int error) { return error == EAGAIN || error == EINTR; }

// Whether all bytes, including the end, have arrived at the peer's machine.
bool AllArrived(int socket) {
  int bytes = 0;
  return ioctl(socket, SIOCOUTQ, &bytes) != 0 || bytes == 0;
}

}  // namespace

class Connections::Connection final : public scheduling::FairQueue::Entry,
                                      private loop::Watcher,
                                      private loop::Timer {
 public:
  Connection(Connections& all, UniqueFd socket, uint64_t peer)
      : all_(all), socket_(std::move(socket)), peer_(peer), request_(all.limits_.request_bytes) {
    ++all.peers_[peer];
  }
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  std::list<Connection>::iterator place;

  void Begin();
  // Does what can be done now. The object may be gone then.
  void Step();
  uint64_t peer() const { return peer_; }
  size_t response_bytes() const { return response_.size(); }
  bool writing() const { return state_ == State::kWriting; }
  // Closes the connection; its peer gets nothing more, not even bytes under way. The object is gone
  // then.
  void Reset() { Close(Result::kReset); }

 private:
  enum class State { kShaking, kReading, kWriting, kEnding };
  // What to do with a connection: keep it, close it and deliver bytes under way, or drop those.
  enum class Result { kOpen, kClose, kReset };

  void OnReady(uint32_t events) override;
  void Fire() override;  // the connection is late
  Result Shake();
  void RefuseHandshake();
  Result Read();
  Result Write();
  Result StartEnding();
  Result End();
  void Close(Result how);
  // Like recv and send of its socket.
  ssize_t Receive();
  ssize_t Send(absl::string_view bytes);
  void WaitFor(uint32_t events) { all_.loop_->Rewatch(socket_.get(), events, *this); }
  void SetDeadline(std::chrono::milliseconds from_now) {
    all_.loop_->timers().Set(*this, loop::Clock::now() + from_now);
  }

  Connections& all_;
  UniqueFd socket_;
  const uint64_t peer_;
  std::unique_ptr<access::Session> tls_;
  RequestReader request_;
  State state_ = State::kReading;
  std::string response_;
  size_t written_ = 0;
  size_t thrown_away_ = 0;
  int crumbs_ = 0;
};

Connections::Connection::~Connection() {
  if (queued()) all_.queue_.Remove(*this, false);
  if (const auto own = all_.peers_.find(peer_); --own->second == 0) all_.peers_.erase(own);
  all_.response_bytes_ -= response_.size();
  all_.loop_->timers().Clear(*this);
  if (socket_.is_open()) all_.loop_->Unwatch(socket_.get());
}

void Connections::Connection::Begin() {
  if (all_.access_.certificates != nullptr) state_ = State::kShaking;
  SetDeadline(all_.limits_.request_time);
  if (!all_.loop_->Watch(socket_.get(), EPOLLIN, *this)) return Reset();
  OnReady(EPOLLIN);  // most requests have arrived already
}

// Peers take turns, so that nobody waits for the handshakes and pages of one who floods the port.
void Connections::Connection::OnReady(uint32_t) {
  if (!queued()) all_.queue_.Push(*this, peer_, 1);
  all_.AtIterationEnd();
}

void Connections::Connection::Step() {
  Result result = Result::kOpen;
  switch (state_) {
    case State::kShaking:
      result = Shake();
      break;
    case State::kReading:
      result = Read();
      break;
    case State::kWriting:
      result = Write();
      break;
    case State::kEnding:
      result = End();
      break;
  }
  if (result != Result::kOpen) Close(result);
}

ssize_t Connections::Connection::Receive() {
  std::string& buffer = all_.buffer_;
  if (tls_ == nullptr) return recv(socket_.get(), buffer.data(), buffer.size(), 0);
  const iovec piece{buffer.data(), buffer.size()};
  return tls_->Read({&piece, 1});
}

ssize_t Connections::Connection::Send(absl::string_view bytes) {
  if (tls_ == nullptr || tls_->plain_text()) {
    return send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  const iovec piece{const_cast<char*>(bytes.data()), bytes.size()};
  return tls_->Write({&piece, 1});
}

Connections::Connection::Result Connections::Connection::Shake() {
  if (tls_ == nullptr) {
    tls_ =
        access::Session::Accept(*all_.access_.certificates, access::Protocol::kHttp, socket_.get());
    if (tls_ == nullptr) return Result::kReset;
  }
  switch (tls_->Handshake()) {
    case access::Session::Step::kAgain:
      WaitFor(tls_->wants_write() ? EPOLLOUT : EPOLLIN);
      return Result::kOpen;
    case access::Session::Step::kGone:
      return Result::kClose;
    case access::Session::Step::kRefused:
      RefuseHandshake();
      return StartEnding();
    case access::Session::Step::kDone:
      break;
  }
  state_ = State::kReading;
  WaitFor(EPOLLIN);
  return Read();
}

void Connections::Connection::RefuseHandshake() {
  if (tls_->plain_text()) {
    Send(Response(400, kPlainText, "this port speaks TLS: https\n", false));
  }
  static log::Repeated lines(log::Level::kWarn, "TLS handshake of HTTP refused");
  lines.Write([&] {
    return log::Fields{{"reason", tls_->reason()}, {"peer", net::PeerOf(socket_.get()).name}};
  });
}

Connections::Connection::Result Connections::Connection::Read() {
  do {
    const ssize_t count = Receive();
    if (count < 0 && !IsTryAgain(errno)) return Result::kClose;
    if (count == 0) return Result::kClose;  // the peer has closed before it sent a whole request
    if (count > 0) request_.Take({all_.buffer_.data(), static_cast<size_t>(count)});
    if (tls_ != nullptr && (crumbs_ += tls_->TakeCrumbs()) > kMostCrumbs) return Result::kReset;
    // The socket does not report data that TLS has already read.
  } while (request_.status() == 0 && tls_ != nullptr && tls_->more_to_read());
  if (request_.status() == 0) {
    if (tls_ != nullptr) WaitFor(tls_->read_wants_write() ? EPOLLOUT : EPOLLIN);
    return Result::kOpen;
  }
  response_ = all_.answer_(request_, tls_ != nullptr && tls_->has_client_certificate());
  all_.response_bytes_ += response_.size();
  state_ = State::kWriting;
  SetDeadline(all_.limits_.response_time);
  return Write();
}

Connections::Connection::Result Connections::Connection::Write() {
  const ssize_t count = Send(absl::string_view(response_).substr(written_));
  if (count < 0 && !IsTryAgain(errno)) return Result::kClose;
  written_ += static_cast<size_t>(std::max<ssize_t>(count, 0));
  if (written_ < response_.size()) {
    // TLS may need the rest of a message first. Until then there is always room to write.
    WaitFor(tls_ != nullptr && tls_->write_wants_read() ? EPOLLIN : EPOLLOUT);
    return Result::kOpen;
  }
  all_.response_bytes_ -= response_.size();
  std::string().swap(response_);  // an assignment would keep the capacity
  return StartEnding();
}

Connections::Connection::Result Connections::Connection::StartEnding() {
  state_ = State::kEnding;
  if (tls_ != nullptr) tls_->SayEnd();
  shutdown(socket_.get(), SHUT_WR);
  // Edge-triggered: otherwise a closed peer is reported repeatedly, but not the arrival of the
  // response.
  WaitFor(EPOLLIN | EPOLLET);
  return End();
}

Connections::Connection::Result Connections::Connection::End() {
  ssize_t count;
  while ((count = recv(socket_.get(), all_.buffer_.data(), all_.buffer_.size(), 0)) > 0) {
    thrown_away_ += static_cast<size_t>(count);
    if (thrown_away_ > kThrownAwayBytes) return Result::kReset;
  }
  if (count < 0) return IsTryAgain(errno) ? Result::kOpen : Result::kClose;
  return AllArrived(socket_.get()) ? Result::kClose : Result::kOpen;
}

void Connections::Connection::Fire() {
  if (state_ == State::kReading && request_.begun()) {
    Send(ErrorResponse(408, request_.head()));  // if the socket takes it at once
  }
  const bool begins = state_ == State::kShaking || state_ == State::kReading;
  Close(begins || AllArrived(socket_.get()) ? Result::kClose : Result::kReset);
}

void Connections::Connection::Close(Result how) {
  Connections& all = all_;
  all.loop_->Unwatch(socket_.get());
  UniqueFd socket = std::move(socket_);
  all.connections_.erase(place);  // destroys this object
  if (how == Result::kReset) {
    // Drops bytes that were not read; otherwise the kernel would offer them for minutes.
    const linger none = {.l_onoff = 1, .l_linger = 0};
    setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &none, sizeof(none));
  }
  // Closes the socket and reuses its descriptor in one step, so that no other thread can take it.
  if (all.spares_.size() < kSpares && dup3(all.idle_.get(), socket.get(), O_CLOEXEC) >= 0) {
    all.spares_.push_back(std::move(socket));
  }
}

Connections::Connections(UniqueFd listener, const HttpLimits& limits, const HttpAccess& access,
                         Answerer answer)
    : limits_(Affordable(limits)),
      access_(access),
      answer_(std::move(answer)),
      listener_(std::move(listener)),
      buffer_(limits_.request_bytes, '\0') {}

Connections::~Connections() {
  connections_.clear();
  if (loop_ != nullptr) loop_->timers().Clear(*this);
}

absl::Status Connections::Open() {
  absl::StatusOr<std::unique_ptr<loop::Loop>> loop = loop::Loop::Create();
  if (loop.ok()) loop_ = *std::move(loop);
  idle_ = UniqueFd(eventfd(0, EFD_CLOEXEC));
  if (loop_ == nullptr || !idle_.is_open() || !loop_->Watch(listener_.get(), EPOLLIN, *this)) {
    return absl::UnavailableError("no file descriptors left for HTTP (--http_listen)");
  }
  KeepSpares();
  return absl::OkStatus();
}

void Connections::OnReady(uint32_t) {
  accepts_ = true;
  AtIterationEnd();
}

void Connections::Fire() { loop_->Rewatch(listener_.get(), EPOLLIN, *this); }

void Connections::AtIterationEnd() {
  if (!std::exchange(iteration_ends_, true)) loop_->AtIterationEnd(*this);
}

void Connections::Run() {
  iteration_ends_ = false;
  if (std::exchange(accepts_, false)) Accept();
  const loop::Clock::time_point end = loop::Clock::now() + kServeFor;
  while (!queue_.empty() && loop::Clock::now() < end) {
    auto& next = static_cast<Connection&>(*queue_.First());
    queue_.Remove(next, true);
    next.Step();
  }
  if (!queue_.empty()) AtIterationEnd();
  DropResponses();
  KeepSpares();
}

void Connections::Accept() {
  for (int i = 0; i < kAcceptsPerIteration; ++i) {
    UniqueFd socket(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket.is_open()) {
      const uint64_t peer = net::PeerOf(socket.get()).id;
      connections_.emplace_back(*this, std::move(socket), peer);
      connections_.back().place = std::prev(connections_.end());
      connections_.back().Begin();
      if (connections_.size() > limits_.connections) OldestOfTheLargest().Reset();
      continue;
    }
    const int error = errno;
    if (error == EAGAIN) return;
    if (error == EINTR || error == ECONNABORTED) continue;
    if (error == EMFILE || error == ENFILE) {
      // Those that have come are served first, and may leave their descriptors.
      if (spares_.empty() && !queue_.empty()) return;
      if (spares_.empty() && !connections_.empty()) OldestOfTheLargest().Reset();
      if (!spares_.empty()) {
        spares_.pop_back();
        continue;
      }
    }
    loop_->Rewatch(listener_.get(), 0, *this);
    loop_->timers().Set(*this, loop::Clock::now() + kDeafFor);
    return;
  }
}

// The oldest connection of the peers that have the most. REQUIRES: there is a connection.
Connections::Connection& Connections::OldestOfTheLargest() {
  size_t most = 0;
  for (const auto& [peer, count] : peers_) most = std::max(most, count);
  return *std::find_if(connections_.begin(), connections_.end(),
                       [&](const Connection& one) { return peers_.at(one.peer()) == most; });
}

void Connections::KeepSpares() {
  while (spares_.size() < kSpares) {
    UniqueFd spare(fcntl(idle_.get(), F_DUPFD_CLOEXEC, 0));
    if (!spare.is_open()) return;
    spares_.push_back(std::move(spare));
  }
}

void Connections::DropResponses() {
  while (response_bytes_ > limits_.response_bytes) {
    const auto oldest = std::find_if(connections_.begin(), connections_.end(),
                                     [](const Connection& one) { return one.writing(); });
    if (oldest->response_bytes() == response_bytes_) return;  // it is the only one
    oldest->Reset();
  }
}

}  // namespace quantd::http
