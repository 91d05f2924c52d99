// Converts an absl::Status to what a client sees. No other code does that.
//
// The details (grpc-status-details-bin) are wire-compatible with google.rpc.Status: a BadRequest
// with the field's path when the status has one (quantd/field_error.h), an ErrorInfo of domain
// "quantd", and a RetryInfo when the code is UNAVAILABLE.
#ifndef QUANTD_SERVER_WIRE_STATUS_DETAILS_H_
#define QUANTD_SERVER_WIRE_STATUS_DETAILS_H_

#include <string>

#include "absl/status/status.h"
#include "server/wire/call_status.h"

namespace quantd::wire {

// The most bytes of an error's text, so that it fits into HTTP/2 headers together with its details.
inline constexpr size_t kMaxErrorMessageBytes = 1024;

// The texts of an error for clients: truncated to kMaxErrorMessageBytes, and valid UTF-8, because
// they become protobuf strings.
struct ErrorText {
  std::string message;
  std::string field;  // empty if the error belongs to no field
};
ErrorText TextOf(const absl::Status& status);

// OK remains OK.
CallStatus ToCallStatus(const absl::Status& status);

}  // namespace quantd::wire

#endif  // QUANTD_SERVER_WIRE_STATUS_DETAILS_H_
