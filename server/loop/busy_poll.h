// Decides whether a loop with nothing to do polls on for a moment before it sleeps.
//
// A thread that sleeps is woken late, and waking it costs the client, too: with four small calls in
// flight, client and server slept in turns, and calls had 0.75 of the echo's rate; polling makes
// that 1.3, with less CPU (`quantd_bench table --filter="tcp 4 B x 4"`). It must not burn a core
// where calls come seldom, nor take one from clients and kernels. So it polls only while most
// moments end with something to do, which one wait in 64 finds out again, and only while at least
// half of the cores have no loop at work.
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
    int awake = 1;                       // with more loops awake in this process, none polls
  };
  explicit BusyPoll(const Limits& limits) : limits_(limits) { Wakes(); }
  ~BusyPoll() { FallsAsleep(); }
  BusyPoll(const BusyPoll&) = delete;
  BusyPoll& operator=(const BusyPoll&) = delete;

  std::chrono::microseconds moment() const { return limits_.moment; }
  // Asked once before each wait.
  bool IsWorthIt() {
    return limits_.moment.count() > 0 && (credit_ > 0 || ++waits_ % kWaitsPerTry == 0) &&
           awake.load(std::memory_order_relaxed) <= limits_.awake;
  }
  // Whether the moment ended with something to do.
  void Ended(bool found) {
    credit_ = found ? std::min(credit_ + 1, kMostCredit) : std::max(credit_ - kPrice, 0);
  }
  // Around each wait: the loop is awake but then.
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
