#include "server/transport/transport.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "server/transport/acceptor.h"
#include "server/transport/connection.h"

namespace quantd::transport {
namespace {

// How many loops have not run a function yet. absl::BlockingCounter is not instrumented for TSan.
class Countdown {
 public:
  explicit Countdown(size_t count) : left_(count) {}
  void Down() {
    const std::lock_guard lock(mutex_);
    if (--left_ == 0) none_.notify_all();
  }
  void Wait() {
    std::unique_lock lock(mutex_);
    none_.wait(lock, [this] { return left_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable none_;
  size_t left_;
};

// Runs a function on the loop of a set.
class Job final : public loop::Posted {
 public:
  Job(absl::FunctionRef<void(ConnectionSet&)> function, ConnectionSet& set, Countdown& left)
      : function_(function), set_(set), left_(left) {}

 private:
  void Run() override {
    function_(set_);
    left_.Down();
  }
  absl::FunctionRef<void(ConnectionSet&)> function_;
  ConnectionSet& set_;
  Countdown& left_;
};

}  // namespace

Transport::Transport(TransportContext& context, const std::vector<loop::Loop*>& loops)
    : context_(context) {
  for (loop::Loop* loop : loops) {
    sets_.push_back(std::make_unique<ConnectionSet>(context, *loop));
  }
}

Transport::~Transport() = default;

void Transport::OnEveryLoop(absl::FunctionRef<void(ConnectionSet&)> function) {
  Countdown left(sets_.size());
  std::deque<Job> jobs;
  for (const std::unique_ptr<ConnectionSet>& set : sets_) {
    set->loop().Post(jobs.emplace_back(function, *set, left));
  }
  left.Wait();
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

void Transport::Start() {
  OnEveryLoop([this](ConnectionSet& set) {
    for (const std::unique_ptr<Acceptor>& acceptor : acceptors_) {
      if (&acceptor->loop() == &set.loop()) acceptor->Start();
    }
  });
}

void Transport::StopListening() {
  OnEveryLoop([this](ConnectionSet& set) {
    for (const std::unique_ptr<Acceptor>& acceptor : acceptors_) {
      if (&acceptor->loop() == &set.loop()) acceptor->Stop();
    }
  });
}

void Transport::GoAway() {
  context_.draining = true;
  OnEveryLoop([](ConnectionSet& set) { set.GoAway(); });
}

void Transport::EndCalls(const absl::Status& status) {
  OnEveryLoop([&status](ConnectionSet& set) { set.EndCalls(status); });
}

bool Transport::WaitForConnections(std::chrono::steady_clock::time_point until) {
  while (context_.counters.connections.load() > 0) {
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
