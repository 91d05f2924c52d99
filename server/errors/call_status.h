// The status of a call in gRPC's terms: a code, a text and binary details.
#ifndef QUANTD_SERVER_ERRORS_CALL_STATUS_H_
#define QUANTD_SERVER_ERRORS_CALL_STATUS_H_

#include <string>
#include <utility>
#include <vector>

namespace quantd::errors {

// Names and values in addition to gRPC's own; see transport/metadata.h.
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

}  // namespace quantd::errors

#endif  // QUANTD_SERVER_ERRORS_CALL_STATUS_H_
