// Where the work of one operation runs, and how it is stopped.
//
//   Executor executor(4);                       // a pool of four threads, shared by all operations
//   executor.ParallelFor(tasks, [&](size_t task) { ... });
#ifndef QUANTD_EXECUTOR_H_
#define QUANTD_EXECUTOR_H_

#include <cstddef>
#include <functional>
#include <memory>

#include "absl/functional/function_ref.h"

namespace quantd {

// Says whether the work is no longer wanted (the client went away, the deadline passed). Called
// between tiles, from any of the threads at work, so it must be safe from any thread and cheap; the
// answer never goes back from true to false.
using Interrupted = absl::FunctionRef<bool()>;

// A pool of threads over oneTBB. Safe from any thread.
class Executor {
 public:
  // `threads` >= 1 is how many may work at the same time; 0: DefaultThreads().
  explicit Executor(int threads = 0);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  int threads() const { return threads_; }

  // Calls body(0) to body(tasks - 1), each once, the caller's thread among the workers, and returns
  // when all are done. One task, or one thread, runs on the caller's thread without a hand-off.
  void ParallelFor(size_t tasks, absl::FunctionRef<void(size_t)> body) const;

  // Starts the threads now, and not when there is work for them: later the system may refuse to
  // start one, and that ends the process. Waits for a second at most.
  void StartThreads() const;

  // Runs `job` on a thread of the pool, soon. Does not wait.
  void Enqueue(std::function<void()> job) const;

  // CPUs that this process may use: its affinity, bounded by the cgroup's CPU quota (rounded up);
  // at least 1.
  static int DefaultThreads();

 private:
  struct Arena;
  int threads_;
  std::unique_ptr<Arena> arena_;
};

}  // namespace quantd

#endif  // QUANTD_EXECUTOR_H_
