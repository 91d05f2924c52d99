// The pools of threads that calls share.
#ifndef QUANTD_CORE_C_C_POOLS_H_
#define QUANTD_CORE_C_C_POOLS_H_

#include "quantd/executor.h"

namespace quantd::c {

// The pool for `threads` >= 0 threads: 0, and more than that, means Executor::DefaultThreads().
// Made at the first use, lives as long as the process. Safe from any thread.
const Executor& PoolOf(int threads);

}  // namespace quantd::c

#endif  // QUANTD_CORE_C_C_POOLS_H_
