// Stops all tasks of an operation when one of them learns that the result is not wanted.
#ifndef QUANTD_SRC_POOL_WATCH_H_
#define QUANTD_SRC_POOL_WATCH_H_

#include <atomic>
#include <cstdint>

#include "absl/status/status.h"
#include "quantd/executor.h"

namespace quantd {

// Asks whether the work is still wanted, and makes the answer visible to all tasks.
class Watch {
 public:
  explicit Watch(Interrupted interrupted) : interrupted_(interrupted) {}

  bool Stopped() {
    if (stopped_.load(std::memory_order_relaxed)) return true;
    if (!interrupted_()) return false;
    Stop();
    return true;
  }
  bool WasStopped() const { return stopped_.load(std::memory_order_relaxed); }
  // OK, or CANCELLED once it was stopped.
  absl::Status Status() const {
    if (!WasStopped()) return absl::OkStatus();
    return absl::CancelledError("the request is no longer wanted");
  }
  // For internal reasons of the work.
  void Stop() { stopped_.store(true, std::memory_order_relaxed); }

 private:
  Interrupted interrupted_;
  std::atomic<bool> stopped_{false};
};

// A task's access to the watch: asks once per kPeriod bytes of work, the first time at once.
class TaskWatch {
 public:
  static constexpr int64_t kPeriod = 64 * 1024;

  explicit TaskWatch(Watch& watch) : watch_(watch) {}

  bool StoppedBefore(int64_t bytes) {
    const bool due = since_ >= kPeriod;
    since_ = (due ? 0 : since_) + bytes;
    return due && watch_.Stopped();
  }

 private:
  Watch& watch_;
  int64_t since_ = kPeriod;
};

}  // namespace quantd

#endif  // QUANTD_SRC_POOL_WATCH_H_
