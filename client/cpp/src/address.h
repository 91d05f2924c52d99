// Addresses: what a user writes, as a target that gRPC takes.
#ifndef QUANTD_CLIENT_CPP_ADDRESS_H_
#define QUANTD_CLIENT_CPP_ADDRESS_H_

#include <string>

#include "absl/status/statusor.h"

namespace quantd::client {

// `given`, else that of QUANTD_ADDRESS, else 127.0.0.1:50051. A host without a port gets 50051,
// in dns:, ipv4: and ipv6: targets too; others (unix:, xds:, ...) stay as they are.
// INVALID_ARGUMENT for what cannot be one.
absl::StatusOr<std::string> TargetOf(const std::string& given);

// Whether what is sent to a target stays on this machine: Unix sockets and loopback.
bool IsLocal(const std::string& target);

}  // namespace quantd::client

#endif  // QUANTD_CLIENT_CPP_ADDRESS_H_
