// Whether the event loops still run: what /livez reports, and the watchdog of a service manager.
#ifndef QUANTD_SERVER_HEARTBEAT_H_
#define QUANTD_SERVER_HEARTBEAT_H_

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>

#include "absl/types/span.h"
#include "server/loop/loop.h"
#include "server/loop/posted.h"

namespace quantd::server {

// The loops must outlive the calls of Alive, and this object must outlive the loops.
class Heartbeat {
 public:
  // `patience`: how long a loop may take to run what is posted.
  explicit Heartbeat(absl::Span<loop::Loop* const> loops,
                     std::chrono::nanoseconds patience = std::chrono::seconds(5))
      : patience_(patience) {
    for (loop::Loop* const loop : loops) beats_.emplace_back(*loop);
  }

  // Asks every loop for a beat, and returns whether none owes one for too long. Does not block;
  // safe from any thread.
  bool Alive() {
    const std::chrono::nanoseconds now = loop::Clock::now().time_since_epoch();
    return std::all_of(beats_.begin(), beats_.end(),
                       [&](Beat& beat) { return now - beat.OwedSince(now) < patience_; });
  }

 private:
  class Beat final : private loop::Posted {
   public:
    explicit Beat(loop::Loop& loop) : loop_(loop) {}
    // Since when the loop owes a beat. If it owes none, it is asked for one now.
    std::chrono::nanoseconds OwedSince(std::chrono::nanoseconds now) {
      std::chrono::nanoseconds::rep since = 0;
      if (!since_.compare_exchange_strong(since, now.count())) {
        return std::chrono::nanoseconds(since);
      }
      loop_.Post(*this);
      return now;
    }

   private:
    void Run() override { since_.store(0); }

    loop::Loop& loop_;
    std::atomic<std::chrono::nanoseconds::rep> since_{0};  // 0: it owes none
  };

  const std::chrono::nanoseconds patience_;
  std::deque<Beat> beats_;
};

}  // namespace quantd::server

#endif  // QUANTD_SERVER_HEARTBEAT_H_
