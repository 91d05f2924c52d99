// The pools of threads for callers that can't pass an Executor on: other languages, libraries.
#ifndef QUANTD_SHARED_EXECUTOR_H_
#define QUANTD_SHARED_EXECUTOR_H_

#include "quantd/executor.h"

namespace quantd {

// The most threads that SharedExecutor may be asked for.
inline constexpr int kMostSharedThreads = 1024;

// The pool that is shared by all callers in the process that ask for so many threads, 1 to
// kMostSharedThreads. It is made when it is first asked for, and never destroyed. In a child of
// fork() whose parent had asked for more than one thread, the pool computes on the caller's thread:
// the other threads do not exist there, and locks that they held may never open. Safe from any
// thread.
const Executor& SharedExecutor(int threads);

}  // namespace quantd

#endif  // QUANTD_SHARED_EXECUTOR_H_
