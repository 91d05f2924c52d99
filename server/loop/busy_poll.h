// Decides whether a loop with nothing to do polls for a moment before it sleeps.
//
// A thread that sleeps is woken late, and waking it takes CPU time of the client, too. Without
// polling, a client with four small calls in flight and the server slept in turns, and the calls
// had 0.75 of the echo's rate; with it they have 1.3, for less CPU time (`quantd_bench table
// --filter="tcp 4 B x 4"`). Polling must not burn a core where calls are rare, nor take one from
// the clients on this machine. So a loop polls only while three of four moments end with something
// to do, which one wait in 64 finds out again, and only while few loops are awake.
#ifndef QUANTD_SERVER_LOOP_BUSY_POLL_H_
#define QUANTD_SERVER_LOOP_BUSY_POLL_H_

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace quantd::loop {

// Of one loop. Only on the thread that leads it.
class BusyPoll {
 public:
  struct Limits {
    std::chrono::microseconds moment{};  // how long to poll at most; 0: never
    int most_awake = 1;                  // no loop polls while more of this process are awake
  };
  explicit BusyPoll(const Limits& limits) : limits_(limits) { Wakes(); }
  ~BusyPoll() { FallsAsleep(); }
  BusyPoll(const BusyPoll&) = delete;
  BusyPoll& operator=(const BusyPoll&) = delete;

  std::chrono::microseconds moment() const { return limits_.moment; }
  // Ask once before each wait.
  bool IsWorthIt() { return (credit_ > 0 || ++waits_ % kWaitsPerTry == 0) && MayGoOn(); }
  // Ask while polling.
  bool MayGoOn() const {
    return limits_.moment.count() > 0 &&
           awake.load(std::memory_order_relaxed) <= limits_.most_awake;
  }
  // The moment ended. `found`: with something to do.
  void Ended(bool found) {
    credit_ = found ? std::min(credit_ + 1, kMostCredit) : std::max(credit_ - kPrice, 0);
  }
  // The loop sleeps between these two.
  void FallsAsleep() { awake.fetch_sub(Counts(), std::memory_order_relaxed); }
  void Wakes() { awake.fetch_add(Counts(), std::memory_order_relaxed); }

 private:
  int Counts() const { return limits_.moment.count() > 0 ? 1 : 0; }

  // Three of four moments must end with something.
  static constexpr int kPrice = 3;
  static constexpr int kMostCredit = 8;
  static constexpr uint32_t kWaitsPerTry = 64;

  static inline std::atomic<int> awake{0};  // loops that may poll

  const Limits limits_;
  int credit_ = 0;
  uint32_t waits_ = 0;
};

}  // namespace quantd::loop

#endif  // QUANTD_SERVER_LOOP_BUSY_POLL_H_
