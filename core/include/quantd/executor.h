// Runs the work of one operation on threads, and can stop it.
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

// Returns whether the work is no longer wanted (the client went away, the deadline passed). Called
// between tiles, from any of the working threads, so it must be thread-safe and cheap. Once true,
// it stays true.
using Interrupted = absl::FunctionRef<bool()>;

// A pool of threads based on oneTBB. Thread-safe.
class Executor {
 public:
  // `threads` >= 1: the number that may work at the same time; 0: DefaultThreads().
  explicit Executor(int threads = 0);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  int threads() const { return threads_; }

  // Calls body(0) to body(tasks - 1), each once, and returns when all are done. The caller's thread
  // is one of the workers. One task, or one thread, runs on the caller's thread without a hand-off.
  void ParallelFor(size_t tasks, absl::FunctionRef<void(size_t)> body) const;

  // Starts the threads now instead of when there is work for them: later the system may refuse to
  // start one, which ends the process. Waits for at most a second.
  void StartThreads() const;

  // Runs `job` on a thread of the pool, soon. Does not block.
  void Enqueue(std::function<void()> job) const;

  // The number of CPUs that this process may use: its affinity, limited by the cgroup's CPU quota
  // (rounded up); at least 1.
  static int DefaultThreads();

 private:
  struct Arena;
  int threads_;
  std::unique_ptr<Arena> arena_;
};

}  // namespace quantd

#endif  // QUANTD_EXECUTOR_H_
