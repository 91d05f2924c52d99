// The threads that calls compute on: one pool for each number of threads that was asked for.
#ifndef QUANTD_PYTHON_CORE_POOLS_H_
#define QUANTD_PYTHON_CORE_POOLS_H_

#include "quantd/executor.h"

namespace quantd::python {

inline constexpr int kMostThreads = 1024;

// Called when the module is loaded, once.
void InitPools();

// The pool of so many threads, 1 to kMostThreads; made when it is first asked for, kept for ever.
// In a child of fork(), whose parent had started threads, it is one that computes on the caller's
// thread: the others are not there any more, and locks of theirs may never open. Safe from any
// thread.
const Executor& Pool(int threads);

}  // namespace quantd::python

#endif  // QUANTD_PYTHON_CORE_POOLS_H_
