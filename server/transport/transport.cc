#include "server/transport/transport.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <latch>
#include <thread>
#include <utility>

#include "server/transport/connection.h"

namespace quantd::transport {
namespace {

constexpr int kAtOnce = 64;
constexpr int kMostWaiting = 4096;  // the same as in net/listen.cc
// A pause if the system has no memory or no descriptors at all, even for this.
constexpr std::chrono::milliseconds kRest{50};

int OpenSpare() { return open("/dev/null", O_RDONLY | O_CLOEXEC); }

// Runs a function on the loop of a set.
class Job final : public loop::Posted {
 public:
  Job(absl::FunctionRef<void(ConnectionSet&)> function, ConnectionSet& set, std::latch& left)
      : function_(function), set_(set), left_(left) {}

 private:
  void Run() override {
    function_(set_);
    left_.count_down();
  }
  absl::FunctionRef<void(ConnectionSet&)> function_;
  ConnectionSet& set_;
  std::latch& left_;
};

}  // namespace

// Accepts connections from a listening socket. It must always be able to accept: also when the
// process is out of descriptors (one is kept for that), and when there are too many connections.
//
// When the maximum is reached, a newcomer is let in only in place of another connection
// (scheduling/places.h): of the peer with the most, if that has more than the newcomer's peer would
// have, the one whose calls have stood still for longest. So one peer can't lock out the others.
//
// Used only on the thread that leads loop(), except for construction and destruction.
class Transport::Acceptor final : private loop::Watcher, private loop::Timer {
 public:
  Acceptor(Transport& transport, loop::Loop& loop, net::Listener listener);
  ~Acceptor();

  loop::Loop& loop() const { return loop_; }
  void Start();
  void Stop();

 private:
  void OnReady(uint32_t events) override;
  void Fire() override;
  bool AcceptOne();
  bool RefuseOne();
  void Rest();

  Transport& transport_;
  loop::Loop& loop_;
  net::Listener listener_;
  int spare_;  // a descriptor that is closed for a moment if no other is left
  bool watched_ = false;
};

Transport::Acceptor::Acceptor(Transport& transport, loop::Loop& loop, net::Listener listener)
    : transport_(transport), loop_(loop), listener_(std::move(listener)), spare_(OpenSpare()) {}

Transport::Acceptor::~Acceptor() {
  loop_.timers().Clear(*this);
  if (spare_ >= 0) close(spare_);
}

void Transport::Acceptor::Start() { watched_ = loop_.Watch(listener_.fd(), EPOLLIN, *this); }

void Transport::Acceptor::Stop() {
  // Accepts all that wait already, because closing the socket would refuse them.
  for (int i = 0; i < kMostWaiting && listener_.fd() >= 0; ++i) {
    if (!AcceptOne()) break;
  }
  if (std::exchange(watched_, false)) loop_.Unwatch(listener_.fd());
  loop_.timers().Clear(*this);
  listener_.Close();
}

void Transport::Acceptor::OnReady(uint32_t) {
  for (int i = 0; i < kAtOnce; ++i) {
    if (!AcceptOne()) return;
  }
}

// Returns false if there is nothing more to do now.
bool Transport::Acceptor::AcceptOne() {
  const int fd = accept4(listener_.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) {
    if (errno == EAGAIN) return false;
    if (errno == EMFILE || errno == ENFILE) return RefuseOne();
    if (errno == ENOBUFS || errno == ENOMEM) Rest();
    return errno == EINTR || errno == ECONNABORTED;
  }
  TransportContext& context = transport_.context_;
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
bool Transport::Acceptor::RefuseOne() {
  Counters& counters = transport_.context_.counters;
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

void Transport::Acceptor::Rest() {
  if (std::exchange(watched_, false)) loop_.Unwatch(listener_.fd());
  loop_.timers().Set(*this, loop::Clock::now() + kRest);
}

void Transport::Acceptor::Fire() {
  if (spare_ < 0) spare_ = OpenSpare();
  Start();
}

Transport::Transport(TransportContext& context, const std::vector<loop::Loop*>& loops)
    : context_(context) {
  for (loop::Loop* loop : loops) {
    sets_.push_back(std::make_unique<ConnectionSet>(context, *loop));
  }
}

Transport::~Transport() = default;

void Transport::OnEveryLoop(absl::FunctionRef<void(ConnectionSet&)> function) {
  std::latch left(static_cast<ptrdiff_t>(sets_.size()));
  std::deque<Job> jobs;
  for (const std::unique_ptr<ConnectionSet>& set : sets_) {
    set->loop().Post(jobs.emplace_back(function, *set, left));
  }
  left.wait();
}

absl::StatusOr<std::string> Transport::Listen(absl::string_view address, mode_t socket_mode) {
  absl::StatusOr<net::Listening> listening = net::Listen(address, "--listen", socket_mode);
  if (!listening.ok()) return listening.status();
  for (net::Listener& listener : listening->listeners) {
    loop::Loop& loop = sets_[acceptors_.size() % sets_.size()]->loop();
    acceptors_.push_back(std::make_unique<Acceptor>(*this, loop, std::move(listener)));
  }
  beyond_loopback_ |= listening->beyond_loopback;
  if (!listening->note.empty()) notes_.push_back(std::move(listening->note));
  return listening->address;
}

ConnectionSet& Transport::NextSet() {
  return **std::min_element(sets_.begin(), sets_.end(),
                            [](const auto& a, const auto& b) { return a->size() < b->size(); });
}

void Transport::OnEveryAcceptor(void (Acceptor::*function)()) {
  OnEveryLoop([this, function](ConnectionSet& set) {
    for (const std::unique_ptr<Acceptor>& acceptor : acceptors_) {
      if (&acceptor->loop() == &set.loop()) (*acceptor.*function)();
    }
  });
}

void Transport::Start() { OnEveryAcceptor(&Acceptor::Start); }

void Transport::StopListening() { OnEveryAcceptor(&Acceptor::Stop); }

void Transport::GoAway() {
  context_.draining = true;
  OnEveryLoop([](ConnectionSet& set) { set.GoAway(); });
}

void Transport::EndCalls(const absl::Status& status) {
  OnEveryLoop([&status](ConnectionSet& set) { set.EndCalls(status); });
}

bool Transport::WaitForConnections(std::chrono::steady_clock::time_point until) {
  while (context_.connections.taken() > 0) {
    if (std::chrono::steady_clock::now() >= until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

void Transport::Close() {
  StopListening();
  OnEveryLoop([](ConnectionSet& set) { set.Close(); });
}

}  // namespace quantd::transport
