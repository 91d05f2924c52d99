// What a request will take, told before anything is allocated for it.
#ifndef QUANTD_SERVER_OPERATIONS_MEMORY_H_
#define QUANTD_SERVER_OPERATIONS_MEMORY_H_

#include <cstdint>

#include "server/wire/request.h"

namespace quantd::operations {

// Most bytes that plan, execution and response of the request allocate: at least what the planned
// operation's memory_bytes() says. Of a request that a plan refuses any number: no more is
// allocated for it than that. Takes next to no memory itself.
uint64_t MemoryBound(const wire::Request& request);

// Of these, what the plan itself allocates of its parameters, before the operation can say so.
uint64_t PlanBytes(const wire::Request& request);

// Most bytes of its response's message, likewise.
uint64_t ResponseBound(const wire::Request& request);

}  // namespace quantd::operations

#endif  // QUANTD_SERVER_OPERATIONS_MEMORY_H_
