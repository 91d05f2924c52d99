// Measures whether something is fast enough: bytes per window of time, one window after the
// other.
#ifndef QUANTD_SERVER_TRANSPORT_PACE_H_
#define QUANTD_SERVER_TRANSPORT_PACE_H_

#include <chrono>
#include <cstdint>

namespace quantd::transport {

class Pace {
 public:
  using Clock = std::chrono::steady_clock;

  // Starts measuring; `bytes` is the total so far.
  void Start(Clock::time_point now, uint64_t bytes) {
    since_ = now;
    bytes_ = bytes;
  }
  // Whether fewer than `rate` bytes per second were moved in the last whole window. `bytes` is the
  // total so far.
  bool TooSlow(Clock::time_point now, uint64_t bytes, uint64_t rate,
               std::chrono::milliseconds window) {
    if (now - since_ < window) return false;
    const double seconds = std::chrono::duration<double>(now - since_).count();
    const bool slow = static_cast<double>(bytes - bytes_) < seconds * static_cast<double>(rate) ||
                      bytes == bytes_;
    Start(now, bytes);
    return slow;
  }

 private:
  Clock::time_point since_;
  uint64_t bytes_ = 0;
};

}  // namespace quantd::transport

#endif  // QUANTD_SERVER_TRANSPORT_PACE_H_
