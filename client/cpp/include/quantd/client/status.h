// Converts errors of the server to absl::Status with all details.
//
//   absl::Status status = client.Quantize(x, scale).status();
//   for (const FieldViolation& violation : FieldViolations(status)) {
//     ...  // {"scale", "scale has 3 ..."}
//   }
//
// Free functions, safe from any thread.
#ifndef QUANTD_CLIENT_STATUS_H_
#define QUANTD_CLIENT_STATUS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "quantd/v1/quantization.pb.h"

namespace grpc {
class Status;
}

namespace quantd::client {

// An invalid field of the request.
struct FieldViolation {
  std::string field;        // path in the request, such as "scale" or "x.raw_data"
  std::string description;  // what is wrong with it
};

// The same code and message; each detail of grpc-status-details-bin becomes a payload under its
// type URL ("type.googleapis.com/google.rpc.BadRequest" and so on).
absl::Status FromGrpc(const grpc::Status& status);

// The failure of one item of a stream, in the same form.
absl::Status FromItemError(const v1::ItemError& error);

// The fields that the server named; may be empty.
std::vector<FieldViolation> FieldViolations(const absl::Status& status);

// The time to wait before a retry, if the server asks for one (it was overloaded).
std::optional<absl::Duration> RetryDelay(const absl::Status& status);

}  // namespace quantd::client

#endif  // QUANTD_CLIENT_STATUS_H_
