// Measures whether something is fast enough. Bytes earn the time that they take at the least rate;
// nothing is saved for later.
#ifndef QUANTD_SERVER_TRANSPORT_PACE_H_
#define QUANTD_SERVER_TRANSPORT_PACE_H_

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace quantd::transport {

class Pace {
 public:
  using Clock = std::chrono::steady_clock;

  void Start(Clock::time_point now) { earned_until_ = now; }
  // So many bytes have moved; `rate` is the least number in a second.
  void Moved(Clock::time_point now, size_t bytes, uint64_t rate) {
    const std::chrono::duration<double> earned(static_cast<double>(bytes) /
                                               static_cast<double>(rate));
    earned_until_ =
        std::min(earned_until_ + std::chrono::duration_cast<Clock::duration>(earned), now);
  }
  // Whether it has fallen behind by more than `patience`.
  bool TooSlow(Clock::time_point now, Clock::duration patience) const {
    return now - earned_until_ > patience;
  }

 private:
  Clock::time_point earned_until_;
};

}  // namespace quantd::transport

#endif  // QUANTD_SERVER_TRANSPORT_PACE_H_
