// Things to be done at a time: a heap that knows where each timer is, so that taking one back costs
// as little as setting it. Most are taken back: a deadline passes for few calls.
#ifndef QUANTD_SERVER_LOOP_TIMERS_H_
#define QUANTD_SERVER_LOOP_TIMERS_H_

#include <chrono>
#include <cstddef>
#include <vector>

namespace quantd::loop {

using Clock = std::chrono::steady_clock;

// Of one loop; set, taken back and fired by the thread that leads it.
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
  // It is not set any more; it may be set again.
  virtual void Fire() = 0;

  Clock::time_point when_;
  size_t place_ = kNowhere;
};

class Timers {
 public:
  // Sets it, or moves it to another time.
  void Set(Timer& timer, Clock::time_point when);
  // Takes it back if it is set.
  void Clear(Timer& timer);
  // Fires what is due.
  void Fire(Clock::time_point now);

  bool empty() const { return heap_.empty(); }
  // The first one's. REQUIRES: not empty.
  Clock::time_point next() const { return heap_.front()->when_; }

 private:
  void Place(size_t place, Timer* timer) {
    heap_[place] = timer;
    timer->place_ = place;
  }
  void Rise(size_t place);
  void Sink(size_t place);

  std::vector<Timer*> heap_;  // of four: timer i is not later than 4i + 1 to 4i + 4
};

}  // namespace quantd::loop

#endif  // QUANTD_SERVER_LOOP_TIMERS_H_
