// Decides whether a loop with nothing to do polls on for a moment before it sleeps.
//
// A thread that sleeps is woken late, and waking it costs the client, too: with four small calls in
// flight, client and server slept in turns, and calls had 0.75 of the echo's rate; polling makes
// that 1.3, with less CPU (`quantd_bench table --filter="tcp 4 B x 4"`). It must not burn a core
// where calls come seldom. So it polls only while most moments end with something to do; it finds
// that out again by one wait in 64.
#ifndef QUANTD_SERVER_LOOP_BUSY_POLL_H_
#define QUANTD_SERVER_LOOP_BUSY_POLL_H_

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace quantd::loop {

// Of one loop. Only on the thread that leads it.
class BusyPoll {
 public:
  // `moment`: how long to poll at most; 0: never.
  explicit BusyPoll(std::chrono::microseconds moment) : moment_(moment) {}

  std::chrono::microseconds moment() const { return moment_; }
  // Asked once before each wait.
  bool IsWorthIt() { return moment_.count() > 0 && (credit_ > 0 || ++waits_ % kWaitsPerTry == 0); }
  // Whether the moment ended with something to do.
  void Ended(bool found) {
    credit_ = found ? std::min(credit_ + 1, kMostCredit) : std::max(credit_ - kPrice, 0);
  }

 private:
  // Three of four moments must end with something.
  static constexpr int kPrice = 3;
  static constexpr int kMostCredit = 8;
  static constexpr uint32_t kWaitsPerTry = 64;

  const std::chrono::microseconds moment_;
  int credit_ = 0;
  uint32_t waits_ = 0;
};

}  // namespace quantd::loop

#endif  // QUANTD_SERVER_LOOP_BUSY_POLL_H_
