// What a quantd_plan holds.
#ifndef QUANTD_CORE_C_C_PLAN_H_
#define QUANTD_CORE_C_C_PLAN_H_

#include <cstdint>
#include <vector>

#include "quantd/core.h"
#include "quantd/operation.h"

struct quantd_plan {
  quantd::OperationPlan plan;
  quantd::ResultLayout layout;
  // What the plan's views are of, so that nothing in it lies in the caller's memory.
  std::vector<uint8_t> scales, zero_points;
};

#endif  // QUANTD_CORE_C_C_PLAN_H_
