// See worker.h.
#include "server/parameters/worker.h"

#include <utility>

namespace quantd::parameters {

Worker::~Worker() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

bool Worker::Submit(Priority priority, std::function<void()> job) {
  {
    const std::lock_guard lock(mutex_);
    if (jobs_[priority].size() >= most_) return false;
    jobs_[priority].push_back(std::move(job));
  }
  changed_.notify_one();
  return true;
}

void Worker::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock,
                  [this] { return ends_ || !jobs_[kFirst].empty() || !jobs_[kLast].empty(); });
    if (ends_) return;
    auto& jobs = jobs_[jobs_[kFirst].empty() ? kLast : kFirst];
    std::function<void()> job = std::move(jobs.front());
    jobs.pop_front();
    lock.unlock();
    job();
    job = nullptr;  // what it holds is let go of here
    lock.lock();
  }
}

}  // namespace quantd::parameters
