// quantd_plan_create, _describe and _free, and what the library says about itself.
#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "c_arguments.h"
#include "c_error.h"
#include "c_plan.h"
#include "quantd/dequantize.h"
#include "quantd/dynamic_quantize.h"
#include "quantd/quantize.h"
#include "quantd/targets.h"

namespace quantd::c {
namespace {

// A plan of scales that are given, with copies of them. (A vector's bytes stay where they are when
// it is moved.)
template <typename Plan>
quantd_plan Owning(Plan plan) {
  const auto own = [](ScaleOperand& operand) {
    std::vector<uint8_t> copy(operand.bytes.begin(), operand.bytes.end());
    operand.bytes = copy;
    return copy;
  };
  std::vector<uint8_t> scales = own(plan.scales);
  std::vector<uint8_t> zero_points = own(plan.zero_points);
  return {std::move(plan), std::move(scales), std::move(zero_points)};
}

absl::StatusOr<quantd_plan> MakePlan(const quantd_parameters& parameters) {
  switch (parameters.operation) {
    case QUANTD_QUANTIZE: {
      absl::StatusOr<QuantizeParameters> read = ToQuantize(parameters);
      if (!read.ok()) return read.status();
      absl::StatusOr<QuantizePlan> plan = PlanQuantize(*read);
      if (!plan.ok()) return plan.status();
      return Owning(*std::move(plan));
    }
    case QUANTD_DEQUANTIZE: {
      absl::StatusOr<DequantizeParameters> read = ToDequantize(parameters);
      if (!read.ok()) return read.status();
      absl::StatusOr<DequantizePlan> plan = PlanDequantize(*read);
      if (!plan.ok()) return plan.status();
      return Owning(*std::move(plan));
    }
    case QUANTD_DYNAMIC_QUANTIZE: {
      absl::StatusOr<DynamicQuantizeParameters> read = ToDynamicQuantize(parameters);
      if (!read.ok()) return read.status();
      absl::StatusOr<DynamicQuantizePlan> plan = PlanDynamicQuantize(*read);
      if (!plan.ok()) return plan.status();
      return quantd_plan{*std::move(plan), {}, {}};
    }
    default:
      return FieldError("operation", absl::StrCat("operation is ", parameters.operation,
                                                  ", 1 to 3 are possible"));
  }
}

quantd_plan_info Describe(const quantd_plan& plan) {
  const PlanBase& base = plan.base();
  quantd_plan_info info = {};
  info.operation = plan.operation();
  info.x_type = static_cast<int32_t>(base.input_type);
  info.y_type = static_cast<int32_t>(base.output_type);
  info.elements = base.elements;
  info.scales = base.layout.scale_count;
  info.x_size = base.input_bytes;
  info.y_size = base.output_bytes;
  if (const DynamicQuantizePlan* const dynamic = plan.dynamic(); dynamic != nullptr) {
    info.scale_type = static_cast<int32_t>(dynamic->scale_type);
    info.scale_rank = static_cast<int32_t>(dynamic->scale_shape.size());
    std::copy(dynamic->scale_shape.begin(), dynamic->scale_shape.end(), info.scale_shape);
    info.scale_size = dynamic->scale_bytes;
    if (dynamic->has_zero_point) info.zero_point_type = info.y_type;
    info.zero_point_size = dynamic->zero_point_bytes;
    if (dynamic->has_tensor_scale) {
      info.tensor_scale_type = QUANTD_FLOAT;
      info.tensor_scale_size = sizeof(float);
    }
  }
  return info;
}

}  // namespace
}  // namespace quantd::c

const char* quantd_core_version(void) { return QUANTD_CORE_VERSION; }

int32_t quantd_core_abi(void) { return QUANTD_CORE_ABI; }

const char* quantd_core_target(void) {
  const char* name = "";
  quantd::c::CatchExceptions(nullptr, [&] {
    name = quantd::CurrentTarget().data();  // a literal
    return absl::OkStatus();
  });
  return name;
}

int32_t quantd_plan_create(const quantd_parameters* parameters, quantd_plan** plan,
                           quantd_error* error) {
  if (plan != nullptr) *plan = nullptr;
  return quantd::c::CatchExceptions(error, [&]() -> absl::Status {
    if (plan == nullptr) return quantd::FieldError("plan", "plan is NULL");
    const absl::StatusOr<quantd_parameters> given = quantd::c::ReadStruct(parameters, "parameters");
    if (!given.ok()) return given.status();
    absl::StatusOr<quantd_plan> made = quantd::c::MakePlan(*given);
    if (!made.ok()) return made.status();
    *plan = new quantd_plan(*std::move(made));
    return absl::OkStatus();
  });
}

int32_t quantd_plan_describe(const quantd_plan* plan, quantd_plan_info* info, quantd_error* error) {
  return quantd::c::CatchExceptions(error, [&]() -> absl::Status {
    if (plan == nullptr) return quantd::FieldError("plan", "plan is NULL");
    const absl::StatusOr<quantd_plan_info> given = quantd::c::ReadStruct(info, "info");
    if (!given.ok()) return given.status();
    const uint32_t struct_size = given->struct_size;
    *info = quantd::c::Describe(*plan);
    info->struct_size = struct_size;
    return absl::OkStatus();
  });
}

void quantd_plan_free(quantd_plan* plan) { delete plan; }
