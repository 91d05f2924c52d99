// How long a request takes to compute, so that short work runs where it was read and long work
// leaves its loop. A table, because the server has no state between calls: work that takes longer
// than this says gives its core back (scheduling/compute_slots.h).
#ifndef QUANTD_SERVER_OPERATIONS_COSTS_H_
#define QUANTD_SERVER_OPERATIONS_COSTS_H_

#include <chrono>
#include <cstdint>

#include "server/wire/request.h"

namespace quantd::operations {

struct Cost {
  uint64_t bytes = 0;               // of x, and for Dequantize of x as FLOAT
  std::chrono::nanoseconds time{};  // on one core
};
Cost CostOf(const wire::Request& request);

}  // namespace quantd::operations

#endif  // QUANTD_SERVER_OPERATIONS_COSTS_H_
