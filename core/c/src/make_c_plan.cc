// quantd_plan_create, _describe and _free, and information about the library.
#include <algorithm>
#include <memory>
#include <utility>
#include <variant>

#include "c_arguments.h"
#include "c_error.h"
#include "c_plan.h"
#include "quantd/targets.h"

namespace quantd::c {
namespace {

// Copies the bytes that a plan views, and makes it view the copy.
std::vector<uint8_t> Own(ScaleOperand& operand) {
  std::vector<uint8_t> copy(operand.bytes.begin(), operand.bytes.end());
  operand.bytes = copy;
  return copy;
}

template <typename Parameters>
absl::StatusOr<std::unique_ptr<quantd_plan>> PlanOf(const absl::StatusOr<Parameters>& parameters) {
  if (!parameters.ok()) return parameters.status();
  absl::StatusOr<OperationPlan> plan = quantd::MakePlan(*parameters);
  if (!plan.ok()) return plan.status();
  auto made = std::make_unique<quantd_plan>();
  made->plan = *std::move(plan);
  made->layout = LayoutOf(made->plan);
  const auto own = [&made](auto& each) {
    if constexpr (requires { each.scales; }) {
      made->scales = Own(each.scales);
      made->zero_points = Own(each.zero_points);
    }
  };
  std::visit(own, made->plan);
  return made;
}

absl::StatusOr<std::unique_ptr<quantd_plan>> MakePlan(const quantd_parameters& parameters) {
  switch (parameters.operation) {
    case QUANTD_QUANTIZE:
      return PlanOf(ToQuantize(parameters));
    case QUANTD_DEQUANTIZE:
      return PlanOf(ToDequantize(parameters));
    case QUANTD_DYNAMIC_QUANTIZE:
      return PlanOf(ToDynamicQuantize(parameters));
    default:
      return FieldError("operation", absl::StrCat("operation is ", parameters.operation,
                                                  ", 1 to 3 are possible"));
  }
}

quantd_plan_info Describe(const quantd_plan& plan) {
  const PlanBase& base = BaseOf(plan.plan);
  const ResultLayout& layout = plan.layout;
  quantd_plan_info info = {};
  info.operation = static_cast<int32_t>(plan.plan.index()) + 1;
  info.x_type = static_cast<int32_t>(base.input_type);
  info.elements = base.elements;
  info.scales = base.layout.scale_count;
  info.x_size = base.input_bytes;
  const auto describe = [](const TensorLayout& tensor, int32_t& type, uint64_t& size) {
    type = static_cast<int32_t>(tensor.data_type);
    size = tensor.bytes;
  };
  describe(layout.y, info.y_type, info.y_size);
  if (layout.y_scale) {
    describe(*layout.y_scale, info.scale_type, info.scale_size);
    info.scale_rank = static_cast<int32_t>(layout.y_scale->shape.size());
    std::copy(layout.y_scale->shape.begin(), layout.y_scale->shape.end(), info.scale_shape);
  }
  if (layout.y_zero_point) {
    describe(*layout.y_zero_point, info.zero_point_type, info.zero_point_size);
  }
  if (layout.y_tensor_scale) {
    describe(*layout.y_tensor_scale, info.tensor_scale_type, info.tensor_scale_size);
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
    absl::StatusOr<std::unique_ptr<quantd_plan>> made = quantd::c::MakePlan(*given);
    if (!made.ok()) return made.status();
    *plan = made->release();
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
