// The one place where an absl::Status becomes what a client sees.
//
// The details (grpc-status-details-bin) are wire-compatible with google.rpc.Status: a BadRequest
// with the field's path when the status has one (quantd/field_error.h), an ErrorInfo of domain
// "quantd", and a RetryInfo when the code is UNAVAILABLE.
#ifndef QUANTD_SERVER_WIRE_STATUS_DETAILS_H_
#define QUANTD_SERVER_WIRE_STATUS_DETAILS_H_

#include <grpcpp/support/status.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace quantd::wire {

// `status` with a reason for ErrorInfo: what went wrong in UPPER_SNAKE_CASE, such as "QUEUE_FULL".
// Without one the reason is the name of the code.
absl::Status WithReason(absl::Status status, absl::string_view reason);
std::string ErrorReason(const absl::Status& status);

// OK stays OK. The message is cut to kMaxErrorMessageBytes and made valid UTF-8.
grpc::Status ToGrpcStatus(const absl::Status& status);

// Most bytes of text in an error, so that it fits into HTTP/2 headers along with its details.
inline constexpr size_t kMaxErrorMessageBytes = 1024;

// The message of a status as clients get it.
std::string ErrorMessage(const absl::Status& status);

}  // namespace quantd::wire

#endif  // QUANTD_SERVER_WIRE_STATUS_DETAILS_H_
