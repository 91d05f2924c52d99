#include "server/process/every_second.h"

#include <pthread.h>

#include <chrono>

namespace quantd::process {

void EverySecond::Start() {
  thread_ = std::thread([this] { Run(); });
  pthread_setname_np(thread_.native_handle(), "quantd-second");
}

void EverySecond::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

bool EverySecond::Stop(std::chrono::steady_clock::time_point end) {
  {
    std::unique_lock lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
    const auto has_ended = [this] { return ended_ || !thread_.joinable(); };
    if (!changed_.wait_until(lock, end, has_ended)) {
      thread_.detach();
      return false;
    }
  }
  Stop();
  return true;
}

void EverySecond::Wake() {
  {
    const std::lock_guard lock(mutex_);
    woken_ = true;
  }
  changed_.notify_all();
}

void EverySecond::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait_for(lock, std::chrono::seconds(1), [this] { return woken_ || stopped_; });
    if (stopped_) break;
    woken_ = false;
    lock.unlock();
    for (const std::function<void()>& task : tasks_) task();
    lock.lock();
  }
  ended_ = true;
  changed_.notify_all();
}

}  // namespace quantd::process
