// What a quantd_plan holds.
#ifndef QUANTD_CORE_C_C_PLAN_H_
#define QUANTD_CORE_C_C_PLAN_H_

#include <cstdint>
#include <variant>
#include <vector>

#include "quantd/core.h"
#include "quantd/plan.h"

struct quantd_plan {
  // In the order of the operations' numbers, from 1.
  std::variant<quantd::QuantizePlan, quantd::DequantizePlan, quantd::DynamicQuantizePlan> plan;
  // What its views are of, so that nothing in it lies in the caller's memory.
  std::vector<uint8_t> scales, zero_points;

  int32_t operation() const { return static_cast<int32_t>(plan.index()) + 1; }
  const quantd::PlanBase& base() const {
    return *std::visit([](const quantd::PlanBase& each) { return &each; }, plan);
  }
  const quantd::DynamicQuantizePlan* dynamic() const {
    return std::get_if<quantd::DynamicQuantizePlan>(&plan);
  }
  bool report_error() const {
    const auto* const quantize = std::get_if<quantd::QuantizePlan>(&plan);
    if (quantize != nullptr) return quantize->report_error;
    return dynamic() != nullptr && dynamic()->report_error;
  }
};

#endif  // QUANTD_CORE_C_C_PLAN_H_
