// quantd_plan_run: checks where a call's tensors lie, and runs the plan over them.
#include <array>

#include "c_arguments.h"
#include "c_error.h"
#include "c_places.h"
#include "c_plan.h"
#include "quantd/dequantize.h"
#include "quantd/dynamic_quantize.h"
#include "quantd/quantize.h"

namespace quantd::c {
namespace {

// x first, then the outputs.
using Places = std::array<Place, 5>;

absl::StatusOr<Places> FindPlaces(const quantd_plan& plan, const quantd_call& call) {
  const PlanBase& base = plan.base();
  const DynamicQuantizePlan* const dynamic = plan.dynamic();
  struct Wanted {
    absl::string_view field;
    const void* data;
    uint64_t size, wanted;
  };
  const Wanted wanted[] = {
      {"x", call.x, call.x_size, base.input_bytes},
      {"y", call.y, call.y_size, base.output_bytes},
      {"scale", call.scale, call.scale_size, dynamic == nullptr ? 0 : dynamic->scale_bytes},
      {"zero_point", call.zero_point, call.zero_point_size,
       dynamic == nullptr ? 0 : dynamic->zero_point_bytes},
      {"tensor_scale", call.tensor_scale, call.tensor_scale_size,
       dynamic != nullptr && dynamic->has_tensor_scale ? sizeof(float) : 0},
  };
  Places places;
  for (size_t i = 0; i < places.size(); ++i) {
    const Wanted& one = wanted[i];
    if (one.size != one.wanted) {
      return FieldError(one.field, absl::StrCat(one.field, " has ", one.size,
                                                " bytes, the plan's has ", one.wanted));
    }
    absl::StatusOr<absl::Span<uint8_t>> bytes = BytesAt(one.data, one.size, one.field);
    if (!bytes.ok()) return bytes.status();
    places[i] = {one.field, *bytes};
  }
  if (absl::Status status = CheckApart(places, 1); !status.ok()) return status;
  return places;
}

absl::Status CheckCall(const quantd_plan& plan, const quantd_call& call) {
  if (absl::Status status = CheckThreads(call.threads); !status.ok()) return status;
  if (plan.report_error() != (call.report != nullptr)) {
    return FieldError("report",
                      absl::StrCat("report is ", call.report == nullptr ? "" : "not ",
                                   "NULL, the plan's report_error is ", plan.report_error()));
  }
  return absl::OkStatus();
}

absl::Status Execute(const quantd_plan& plan, const quantd_call& call, const Places& places,
                     QuantizationError* error) {
  const absl::Span<const uint8_t> x = places[0].bytes;
  const absl::Span<uint8_t> y = places[1].bytes;
  const Executor& pool = PoolOf(call.threads);
  const auto interrupted = [flag = call.cancelled] { return IsSet(flag); };
  switch (plan.operation()) {
    case QUANTD_QUANTIZE:
      return Quantize(std::get<QuantizePlan>(plan.plan), x, pool, interrupted, y, error);
    case QUANTD_DEQUANTIZE:
      return Dequantize(std::get<DequantizePlan>(plan.plan), x, pool, interrupted, y);
    default:
      return DynamicQuantize(*plan.dynamic(), x, pool, interrupted,
                             {.y = y,
                              .scale = places[2].bytes,
                              .zero_point = places[3].bytes,
                              .tensor_scale = places[4].bytes},
                             error);
  }
}

absl::Status Run(const quantd_plan& plan, const quantd_call& call) {
  if (absl::Status status = CheckCall(plan, call); !status.ok()) return status;
  const absl::StatusOr<Places> places = FindPlaces(plan, call);
  if (!places.ok()) return places.status();
  QuantizationError error;
  absl::Status status = Execute(plan, call, *places, plan.report_error() ? &error : nullptr);
  if (status.ok() && call.report != nullptr) {
    *call.report = ToReport(error);
  }
  return status;
}

}  // namespace
}  // namespace quantd::c

int32_t quantd_plan_run(const quantd_plan* plan, const quantd_call* call, quantd_error* error) {
  return quantd::c::CatchExceptions(error, [&]() -> absl::Status {
    if (plan == nullptr) return quantd::FieldError("plan", "plan is NULL");
    const absl::StatusOr<quantd_call> given = quantd::c::ReadStruct(call, "call");
    if (!given.ok()) return given.status();
    return quantd::c::Run(*plan, *given);
  });
}
