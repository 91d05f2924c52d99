// The contents of a quantd_plan.
#ifndef QUANTD_CORE_C_C_PLAN_H_
#define QUANTD_CORE_C_C_PLAN_H_

#include <cstdint>
#include <vector>

#include "quantd/core.h"
#include "quantd/operation.h"

struct quantd_plan {
  quantd::OperationPlan plan;
  quantd::ResultLayout layout;
  // The plan views these copies, so that nothing in it is in the caller's memory.
  std::vector<uint8_t> scales, zero_points;
};

#endif  // QUANTD_CORE_C_C_PLAN_H_
