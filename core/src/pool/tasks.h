// How an operation is split into tasks, and where they run.
#ifndef QUANTD_SRC_POOL_TASKS_H_
#define QUANTD_SRC_POOL_TASKS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "quantd/executor.h"

namespace quantd {

// Where tasks run: in a pool, or (null) one after the other on this thread.
using Workers = const Executor*;

inline int ThreadsOf(Workers workers) { return workers == nullptr ? 1 : workers->threads(); }
inline void ForEachTask(Workers workers, size_t tasks, absl::FunctionRef<void(size_t)> body) {
  if (workers != nullptr) return workers->ParallelFor(tasks, body);
  for (size_t task = 0; task < tasks; ++task) body(task);
}

// Equal ranges of elements; the last one may be shorter.
struct TaskSplit {
  // Waking a thread and the first misses of its caches cost as much as processing this many bytes,
  // some 5 us. So a second thread gives 1.4x (Quantize) and 1.5x (DynamicQuantize) at 1 MiB, 1.7x
  // and 1.9x at 4 MiB, 2x at 16 MiB (AVX-512).
  static constexpr uint64_t kBytesPerTask = 128 * 1024;
  // More tasks than threads, so that a delayed thread does not delay the whole operation.
  static constexpr uint64_t kTasksPerThread = 4;
  // Larger tasks gain nothing, and other operations wait for a thread until a task ends.
  static constexpr uint64_t kMostBytesPerTask = 1024 * 1024;

  // `bytes` is the larger of input and output. Tasks begin at multiples of `align` elements.
  TaskSplit(int64_t elements, uint64_t bytes, int threads, int64_t align,
            size_t most_tasks = SIZE_MAX)
      : elements_(elements) {
    uint64_t most = 1;
    if (threads > 1) {
      most = std::max(static_cast<uint64_t>(threads) * kTasksPerThread, bytes / kMostBytesPerTask);
    }
    most = std::min<uint64_t>(most, most_tasks);
    const auto tasks = static_cast<int64_t>(std::clamp<uint64_t>(bytes / kBytesPerTask, 1, most));
    per_task_ = (elements + tasks - 1) / tasks;
    if (per_task_ % align != 0) per_task_ += align - per_task_ % align;
    per_task_ = std::max(per_task_, align);
    tasks_ = static_cast<size_t>((elements + per_task_ - 1) / per_task_);
  }

  size_t tasks() const { return tasks_; }
  int64_t begin(size_t task) const { return static_cast<int64_t>(task) * per_task_; }
  int64_t end(size_t task) const { return std::min(begin(task) + per_task_, elements_); }

 private:
  int64_t elements_;
  int64_t per_task_ = 0;
  size_t tasks_ = 0;
};

}  // namespace quantd

#endif  // QUANTD_SRC_POOL_TASKS_H_
