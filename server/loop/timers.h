// Timers in a heap that knows the place of each timer, so that clearing one costs as little as
// setting it. Most timers are cleared: few calls reach their deadline.
#ifndef QUANTD_SERVER_LOOP_TIMERS_H_
#define QUANTD_SERVER_LOOP_TIMERS_H_

#include <chrono>
#include <cstddef>
#include <vector>

namespace quantd::loop {

using Clock = std::chrono::steady_clock;

// Belongs to one loop; set, cleared and fired by the thread that leads it.
class Timer {
 public:
  bool set() const { return place_ != kNowhere; }
  Clock::time_point when() const { return when_; }

 protected:
  Timer() = default;
  ~Timer() = default;  // REQUIRES: not set

 private:
  friend class Timers;
  static constexpr size_t kNowhere = static_cast<size_t>(-1);
  // Called when the timer is due. It is no longer set, and may be set again.
  virtual void Fire() = 0;

  Clock::time_point when_;
  size_t place_ = kNowhere;
};

class Timers {
 public:
  // Sets the timer, or moves it to another time.
  void Set(Timer& timer, Clock::time_point when);
  // Clears the timer if it is set.
  void Clear(Timer& timer);
  // Fires the timers that are due.
  void Fire(Clock::time_point now);

  bool empty() const { return heap_.empty(); }
  // The time of the earliest timer. REQUIRES: not empty.
  Clock::time_point next() const { return heap_.front()->when_; }

 private:
  void Place(size_t place, Timer* timer) {
    heap_[place] = timer;
    timer->place_ = place;
  }
  void Rise(size_t place);
  void Sink(size_t place);

  std::vector<Timer*> heap_;  // 4-ary: timer i is not later than timers 4i + 1 to 4i + 4
};

}  // namespace quantd::loop

#endif  // QUANTD_SERVER_LOOP_TIMERS_H_
