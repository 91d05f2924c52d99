// The reason of google.rpc.ErrorInfo: why a call failed, in one word that programs can act on.
#ifndef QUANTD_SERVER_ERRORS_REASON_H_
#define QUANTD_SERVER_ERRORS_REASON_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"

namespace quantd::errors {

inline constexpr char kReasonPayload[] = "quantd/reason";

// `status` with a reason: what went wrong in UPPER_SNAKE_CASE, such as "QUEUE_FULL".
// REQUIRES: !status.ok().
inline absl::Status WithReason(absl::Status status, absl::string_view reason) {
  status.SetPayload(kReasonPayload, absl::Cord(reason));
  return status;
}

// The reason, or the name of the code if there is none.
inline std::string Reason(const absl::Status& status) {
  const auto reason = status.GetPayload(kReasonPayload);
  return reason.has_value() ? std::string(*reason) : absl::StatusCodeToString(status.code());
}

}  // namespace quantd::errors

#endif  // QUANTD_SERVER_ERRORS_REASON_H_
