// quantd_plan_run: checks the places of a call's tensors, and runs the plan on them.
#include <array>
#include <optional>

#include "c_arguments.h"
#include "c_error.h"
#include "c_places.h"
#include "c_plan.h"

namespace quantd::c {
namespace {

absl::Status CheckCall(const quantd_plan& plan, const quantd_call& call) {
  if (absl::Status status = CheckThreads(call.threads); !status.ok()) return status;
  if (plan.layout.report_error != (call.report != nullptr)) {
    return FieldError("report",
                      absl::StrCat("report is ", call.report == nullptr ? "" : "not ",
                                   "NULL, the plan's report_error is ", plan.layout.report_error));
  }
  return absl::OkStatus();
}

absl::Status Run(const quantd_plan& plan, const quantd_call& call) {
  if (absl::Status status = CheckCall(plan, call); !status.ok()) return status;
  const auto size_of = [](const std::optional<TensorLayout>& tensor) {
    return tensor ? tensor->bytes : 0;
  };
  const ResultLayout& layout = plan.layout;
  struct Wanted {
    absl::string_view field;
    const void* data;
    uint64_t size, wanted;
  };
  // x first, then the outputs.
  const std::array<Wanted, 5> wanted = {{
      {"x", call.x, call.x_size, BaseOf(plan.plan).input_bytes},
      {"y", call.y, call.y_size, layout.y.bytes},
      {"scale", call.scale, call.scale_size, size_of(layout.y_scale)},
      {"zero_point", call.zero_point, call.zero_point_size, size_of(layout.y_zero_point)},
      {"tensor_scale", call.tensor_scale, call.tensor_scale_size, size_of(layout.y_tensor_scale)},
  }};
  std::array<absl::Span<uint8_t>, 5> bytes;
  std::array<Place, 5> places;
  for (size_t i = 0; i < places.size(); ++i) {
    const Wanted& one = wanted[i];
    if (one.size != one.wanted) {
      return FieldError(one.field, absl::StrCat(one.field, " has ", one.size,
                                                " bytes, the plan's has ", one.wanted));
    }
    const absl::StatusOr<absl::Span<uint8_t>> found = BytesAt(one.data, one.size, one.field);
    if (!found.ok()) return found.status();
    bytes[i] = *found;
    places[i] = {one.field, *found};
  }
  if (absl::Status status = CheckApart(places, 1); !status.ok()) return status;
  QuantizationError error;
  absl::Status status = Execute(
      plan.plan, bytes[0], PoolOf(call.threads), [flag = call.cancelled] { return IsSet(flag); },
      {.y = bytes[1], .scale = bytes[2], .zero_point = bytes[3], .tensor_scale = bytes[4]}, &error);
  if (status.ok() && call.report != nullptr) *call.report = ToReport(error);
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
