#include "server/loop/timers.h"

#include <algorithm>

namespace quantd::loop {

void Timers::Set(Timer& timer, Clock::time_point when) {
  if (!timer.set()) {
    heap_.push_back(nullptr);
    Place(heap_.size() - 1, &timer);
  }
  const bool earlier = when < timer.when_;
  timer.when_ = when;
  // A new timer is at the bottom, so it can only rise.
  if (earlier || timer.place_ + 1 == heap_.size()) Rise(timer.place_);
  Sink(timer.place_);
}

void Timers::Clear(Timer& timer) {
  if (!timer.set()) return;
  const size_t place = timer.place_;
  timer.place_ = Timer::kNowhere;
  Timer* const last = heap_.back();
  heap_.pop_back();
  if (last == &timer) return;
  Place(place, last);
  Rise(place);
  Sink(last->place_);
}

void Timers::Fire(Clock::time_point now) {
  while (!heap_.empty() && heap_.front()->when_ <= now) {
    Timer& timer = *heap_.front();
    Clear(timer);
    timer.Fire();
  }
}

void Timers::Rise(size_t place) {
  Timer* const timer = heap_[place];
  while (place > 0) {
    const size_t above = (place - 1) / 4;
    if (!(timer->when_ < heap_[above]->when_)) break;
    Place(place, heap_[above]);
    place = above;
  }
  Place(place, timer);
}

void Timers::Sink(size_t place) {
  Timer* const timer = heap_[place];
  for (;;) {
    const size_t first = 4 * place + 1;
    if (first >= heap_.size()) break;
    size_t least = first;
    for (size_t i = first + 1; i < std::min(first + 4, heap_.size()); ++i) {
      if (heap_[i]->when_ < heap_[least]->when_) least = i;
    }
    if (!(heap_[least]->when_ < timer->when_)) break;
    Place(place, heap_[least]);
    place = least;
  }
  Place(place, timer);
}

}  // namespace quantd::loop
