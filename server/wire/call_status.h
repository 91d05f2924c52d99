// The status of a call in gRPC's terms: a code, a text and binary details; and the reason of
// google.rpc.ErrorInfo, why a call failed in one word that programs can act on.
#ifndef QUANTD_SERVER_WIRE_CALL_STATUS_H_
#define QUANTD_SERVER_WIRE_CALL_STATUS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"

namespace quantd::wire {

// Names and values in addition to gRPC's own; see transport/head.h.
using Metadata = std::vector<std::pair<std::string, std::string>>;

struct CallStatus {
  int code = 0;         // gRPC's number, which is absl::StatusCode's; 0: OK
  std::string message;  // grpc-message, UTF-8
  std::string details;  // grpc-status-details-bin: a serialized google.rpc.Status; may be empty
  Metadata metadata;    // further trailers

  bool ok() const { return code == 0; }
};

// gRPC's codes are 0 (OK) to 16 (UNAUTHENTICATED).
inline constexpr int kCallCodes = 17;

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

}  // namespace quantd::wire

#endif  // QUANTD_SERVER_WIRE_CALL_STATUS_H_
