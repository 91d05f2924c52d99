#include "quantd/field_error.h"

#include "absl/strings/cord.h"

namespace quantd {
namespace {

constexpr absl::string_view kFieldPayload = "quantd/field";

}  // namespace

absl::Status FieldError(absl::string_view field, absl::string_view message, absl::StatusCode code) {
  absl::Status status(code, message);
  if (!status.ok()) status.SetPayload(kFieldPayload, absl::Cord(field));
  return status;
}

std::string ErrorField(const absl::Status& status) {
  absl::optional<absl::Cord> field = status.GetPayload(kFieldPayload);
  return field.has_value() ? std::string(*field) : std::string();
}

}  // namespace quantd
