// The one place where an absl::Status becomes what a client sees.
//
// The details (grpc-status-details-bin) are wire-compatible with google.rpc.Status: a BadRequest
// with the field's path when the status has one (quantd/field_error.h), an ErrorInfo of domain
// "quantd", and a RetryInfo when the code is UNAVAILABLE.
#ifndef QUANTD_SERVER_WIRE_STATUS_DETAILS_H_
#define QUANTD_SERVER_WIRE_STATUS_DETAILS_H_

#include <string>

#include "absl/status/status.h"
#include "server/errors/call_status.h"

namespace quantd::wire {

// Most bytes of text in an error, so that it fits into HTTP/2 headers along with its details.
inline constexpr size_t kMaxErrorMessageBytes = 1024;

// The texts of an error as clients get them: cut to kMaxErrorMessageBytes, and valid UTF-8, for
// they become protobuf strings.
struct ErrorText {
  std::string message;
  std::string field;  // empty when the error is not a field's
};
ErrorText TextOf(const absl::Status& status);

// OK stays OK.
errors::CallStatus ToCallStatus(const absl::Status& status);

}  // namespace quantd::wire

#endif  // QUANTD_SERVER_WIRE_STATUS_DETAILS_H_
