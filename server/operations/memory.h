// Predicts how much memory a request will take, before anything is allocated for it.
#ifndef QUANTD_SERVER_OPERATIONS_MEMORY_H_
#define QUANTD_SERVER_OPERATIONS_MEMORY_H_

#include <cstdint>

#include "server/wire/request.h"

namespace quantd::operations {

// The most bytes that the plan, execution and response of the request allocate: at least the
// planned operation's memory_bytes(). For a request that the plan refuses it may be any number, but
// no more is allocated than that. This function itself allocates almost nothing.
uint64_t MemoryBound(const wire::Request& request);

// The part of MemoryBound that the plan itself allocates for its parameters, before the operation
// exists.
uint64_t PlanBytes(const wire::Request& request);

// The most bytes of the response's message. Same rules as MemoryBound.
uint64_t ResponseBound(const wire::Request& request);

}  // namespace quantd::operations

#endif  // QUANTD_SERVER_OPERATIONS_MEMORY_H_
