// Converts a user's address to a gRPC target.
#ifndef QUANTD_CLIENT_CPP_ADDRESS_H_
#define QUANTD_CLIENT_CPP_ADDRESS_H_

#include <string>

#include "absl/status/statusor.h"

namespace quantd::client {

// `given`, or else QUANTD_ADDRESS, or else 127.0.0.1:50051. A host without a port gets 50051, also
// in dns:, ipv4: and ipv6: targets; others (unix:, xds:, ...) are unchanged. Returns
// INVALID_ARGUMENT for invalid addresses.
absl::StatusOr<std::string> TargetOf(const std::string& given);

// Whether data sent to a target stays on this machine: Unix sockets and loopback.
bool IsLocal(const std::string& target);

}  // namespace quantd::client

#endif  // QUANTD_CLIENT_CPP_ADDRESS_H_
