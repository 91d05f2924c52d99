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
    if (stopped_) return;
    woken_ = false;
    lock.unlock();
    for (const std::function<void()>& task : tasks_) task();
    lock.lock();
  }
}

}  // namespace quantd::process
