#include "server/scheduling/compute_slots.h"

#include <algorithm>
#include <utility>

namespace quantd::scheduling {
namespace {

thread_local bool serves_here = false;
// The computation that this thread takes next. Leading threads take none: their loop goes first.
thread_local loop::Event* next_here = nullptr;

}  // namespace

bool ComputeSlots::Take(Waiting& waiting, uint64_t peer, uint64_t cost, loop::Loop& loop,
                        loop::Event& granted) {
  const std::lock_guard lock(mutex_);
  if (free_ > 0 && queue_.empty()) {
    --free_;
    return true;
  }
  waiting.granted_ = &granted;
  waiting.loop_ = &loop;
  queue_.Push(waiting, peer, cost);
  return false;
}

bool ComputeSlots::Cancel(Waiting& waiting) {
  {
    const std::lock_guard lock(mutex_);
    if (!waiting.queued()) return false;
    queue_.Remove(waiting, false);
  }
  waiting.loop_->Complete(*waiting.granted_, false);
  return true;
}

int ComputeSlots::TakeIdle(int wanted) {
  const std::lock_guard lock(mutex_);
  if (!queue_.empty()) return 0;
  const int taken = std::min(wanted, free_);
  free_ -= taken;
  return taken;
}

void ComputeSlots::Give(int count) {
  const std::lock_guard lock(mutex_);
  free_ += count;
  while (free_ > 0 && !queue_.empty()) {
    auto& next = static_cast<Waiting&>(*queue_.First());
    queue_.Remove(next, true);
    --free_;
    if (serves_here && loop::Loop::Here() == nullptr && next_here == nullptr) {
      next_here = next.granted_;
    } else {
      next.loop_->Complete(*next.granted_, true);
    }
  }
}

void ComputeSlots::ServeHere() { serves_here = true; }

void ComputeSlots::RunWaiting() {
  while (loop::Event* const next = std::exchange(next_here, nullptr)) next->Complete(true);
}

int ComputeSlots::busy() const {
  const std::lock_guard lock(mutex_);
  return cores_ - free_;
}

int64_t ComputeSlots::waiting() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int64_t>(queue_.size());
}

}  // namespace quantd::scheduling
