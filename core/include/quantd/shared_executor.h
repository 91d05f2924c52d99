// Thread pools for callers that can't pass an Executor: other languages, libraries.
#ifndef QUANTD_SHARED_EXECUTOR_H_
#define QUANTD_SHARED_EXECUTOR_H_

#include "quantd/executor.h"

namespace quantd {

// The most threads that SharedExecutor may be asked for.
inline constexpr int kMostSharedThreads = 1024;

// The pool shared by all callers in the process that ask for this number of threads, 1 to
// kMostSharedThreads. It is made on first use, and never destroyed. In a child of fork() whose
// parent had asked for more than one thread, the pool computes on the caller's thread: the
// other threads do not exist there, and locks that they held may never be released.
// Thread-safe.
const Executor& SharedExecutor(int threads);

}  // namespace quantd

#endif  // QUANTD_SHARED_EXECUTOR_H_
