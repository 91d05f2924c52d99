// The server whose environment this is: of a health check in the server's container.
#ifndef QUANTD_CLIENT_CLI_COMMANDS_OWN_SERVER_H_
#define QUANTD_CLIENT_CLI_COMMANDS_OWN_SERVER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace grpc {
class Channel;
}

namespace quantd::cli {

// `listen`: the server's --listen, as QUANTD_LISTEN has it: HOST:PORT or unix:/PATH, several with
// commas. The first of them, as a client reaches it: 0.0.0.0 and [::] are 127.0.0.1, which both
// listen on, whether or not there is an IPv6. INVALID_ARGUMENT for port 0, which the server picks,
// and for what cannot be an address.
absl::StatusOr<std::string> AddressOfListener(absl::string_view listen);

// `address`: of AddressOfListener. There, QUANTD_TLS_CERT and QUANTD_TLS_KEY are the server's:
// with them a TCP address speaks TLS, and only a server with this very certificate is trusted,
// whatever its name and issuer are. It is shown to a server that wants one, too. Unix
// sockets are plain. INVALID_ARGUMENT for files that can't be read or are not PEM files.
absl::StatusOr<std::shared_ptr<grpc::Channel>> ChannelToOwnServer(const std::string& address);

}  // namespace quantd::cli

#endif  // QUANTD_CLIENT_CLI_COMMANDS_OWN_SERVER_H_
