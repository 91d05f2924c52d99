#include "server/stored_parameters/worker.h"

#include <utility>
#include <vector>

namespace quantd::stored_parameters {

Worker::Worker(size_t most)
    : most_(most), lanes_{Lane(most), Lane(most)}, thread_([this] { Run(); }) {}

Worker::~Worker() {
  if (thread_.joinable()) End(std::chrono::steady_clock::time_point::max());
}

std::function<void()> Worker::TakeOut(Waiting& waiting, bool served) {
  Lane& lane = lanes_[waiting.priority_];
  lane.queue.Remove(waiting, served);
  lane.shares.Give(waiting.peer_, 1);
  return std::exchange(waiting.job_, nullptr);
}

Worker::Waiting* Worker::First() {
  for (const Lane& lane : lanes_) {
    if (!lane.queue.empty()) return static_cast<Waiting*>(lane.queue.First());
  }
  return nullptr;
}

void Worker::Run() {
  for (;;) {
    std::function<void()> job;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return ends_ || First() != nullptr; });
      if (ends_) {
        ended_ = true;
        changed_.notify_all();
        return;
      }
      job = TakeOut(*First(), true);
    }
    job();
  }
}

bool Worker::Submit(Waiting& waiting, Priority priority, uint64_t peer, std::function<void()> job) {
  const std::lock_guard lock(mutex_);
  Lane& lane = lanes_[priority];
  if (ends_ || lane.queue.size() >= most_ || !lane.shares.Within(peer, 1)) return false;
  waiting.priority_ = priority;
  waiting.peer_ = peer;
  waiting.job_ = std::move(job);
  lane.shares.Take(peer, 1);
  lane.queue.Push(waiting, peer, 1);  // every job is one turn, because its cost is unknown
  changed_.notify_all();
  return true;
}

bool Worker::Cancel(Waiting& waiting) {
  std::function<void()> job;  // frees what it holds after the mutex is released
  const std::lock_guard lock(mutex_);
  if (!waiting.queued()) return false;
  job = TakeOut(waiting, false);
  return true;
}

bool Worker::End(std::chrono::steady_clock::time_point end) {
  std::vector<std::function<void()>> dropped;
  std::unique_lock lock(mutex_);
  ends_ = true;
  while (Waiting* const waiting = First()) dropped.push_back(TakeOut(*waiting, false));
  changed_.notify_all();
  const auto has_ended = [this] { return ended_; };
  if (end == std::chrono::steady_clock::time_point::max()) {
    changed_.wait(lock, has_ended);
  } else if (!changed_.wait_until(lock, end, has_ended)) {
    thread_.detach();
    return false;
  }
  lock.unlock();
  thread_.join();
  return true;
}

}  // namespace quantd::stored_parameters
