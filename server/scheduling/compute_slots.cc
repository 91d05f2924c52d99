#include "server/scheduling/compute_slots.h"

#include <algorithm>
#include <utility>

namespace quantd::scheduling {
namespace {

using loop::Clock;

constexpr uint64_t kTurnCost = std::chrono::nanoseconds(ComputeSlots::kTurn).count();

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
  anyone_waits_.store(true, std::memory_order_relaxed);
  return false;
}

bool ComputeSlots::Cancel(Waiting& waiting) {
  {
    const std::lock_guard lock(mutex_);
    if (!waiting.queued()) return false;
    queue_.Remove(waiting, false);
    anyone_waits_.store(!queue_.empty(), std::memory_order_relaxed);
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

void ComputeSlots::Give(int count, bool ends) {
  const std::lock_guard lock(mutex_);
  free_ += count;
  Grant(ends && serves_here && loop::Loop::Here() == nullptr);
}

// `here`: this thread runs the next computation if it has none yet.
void ComputeSlots::Grant(bool here) {
  while (free_ > 0 && !queue_.empty()) {
    auto& next = static_cast<Waiting&>(*queue_.First());
    queue_.Remove(next, true);
    --free_;
    if (next.granted_ == nullptr) {
      --standing_;
      next.continues_.notify_one();
    } else if (here && next_here == nullptr) {
      next_here = next.granted_;
    } else {
      next.loop_->Complete(*next.granted_, true);
    }
  }
  anyone_waits_.store(!queue_.empty(), std::memory_order_relaxed);
}

void ComputeSlots::LetOthers(Turn& turn, uint64_t peer, uint64_t cost) {
  if (!anyone_waits_.load(std::memory_order_relaxed)) return;
  if (Clock::now() - turn.since.load(std::memory_order_relaxed) < kTurn) return;
  std::unique_lock lock(mutex_);
  if (queue_.empty()) return;
  const auto& next = static_cast<const Waiting&>(*queue_.First());
  const int most = kMostStanding + (next.cost() <= kTurnCost ? cores_ : 0);
  if (next.granted_ != nullptr && standing_ >= most) return;
  ++free_;
  Stand(lock, turn, peer, cost);
}

void ComputeSlots::Join(Turn& turn, uint64_t peer, uint64_t cost) {
  std::unique_lock lock(mutex_);
  Stand(lock, turn, peer, cost);
}

void ComputeSlots::Stand(std::unique_lock<std::mutex>& lock, Turn& turn, uint64_t peer,
                         uint64_t cost) {
  const Clock::time_point begin = Clock::now();
  Waiting self;
  queue_.Push(self, peer, cost, /*again=*/true);
  ++standing_;
  Grant(false);
  self.continues_.wait(lock, [&self] { return !self.queued(); });
  const Clock::time_point end = Clock::now();
  turn.since.store(end, std::memory_order_relaxed);
  turn.stood.store(turn.stood.load(std::memory_order_relaxed) + (end - begin),
                   std::memory_order_relaxed);
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
  return static_cast<int64_t>(queue_.size()) - standing_;
}

}  // namespace quantd::scheduling
