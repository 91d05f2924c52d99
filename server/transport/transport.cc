#include "server/transport/transport.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "server/transport/acceptor.h"
#include "server/transport/connection.h"

namespace quantd::transport {
namespace {

// A function to run on all loops, and a count of those that have run it.
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

template <typename Function>
class Job final : public loop::Posted {
 public:
  Job(Function& function, ConnectionSet* set, Countdown& countdown)
      : function_(function), set_(set), countdown_(countdown) {}

 private:
  void Run() override {
    function_(*set_);
    countdown_.Down();
  }
  Function& function_;
  ConnectionSet* set_;
  Countdown& countdown_;
};

}  // namespace

Transport::Transport(TransportContext& context, const std::vector<loop::Loop*>& loops)
    : context_(context) {
  for (loop::Loop* loop : loops) {
    sets_.push_back(std::make_unique<ConnectionSet>(context, *loop, sets_.size()));
  }
}

Transport::~Transport() = default;

template <typename Function>
void Transport::OnEveryLoop(Function function) {
  Countdown countdown(sets_.size());
  std::vector<std::unique_ptr<Job<Function>>> jobs;
  for (const std::unique_ptr<ConnectionSet>& set : sets_) {
    jobs.push_back(std::make_unique<Job<Function>>(function, set.get(), countdown));
    set->loop().Post(*jobs.back());
  }
  countdown.Wait();
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
