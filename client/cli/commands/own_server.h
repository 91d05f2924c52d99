// The server of this environment: for a health check in the server's container.
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

// `listen`: the server's --listen, as in QUANTD_LISTEN: HOST:PORT or unix:/PATH, several separated
// by commas. Returns the first one, in the form that a client can reach: 0.0.0.0 and [::] become
// 127.0.0.1, on which both listen with or without IPv6. Returns INVALID_ARGUMENT for port 0, which
// the server picks, and for invalid addresses.
absl::StatusOr<std::string> AddressOfListener(absl::string_view listen);

// `address`: from AddressOfListener. In the server's environment QUANTD_TLS_CERT and QUANTD_TLS_KEY
// are the server's: if they are set, a TCP address uses TLS, and only a server with exactly this
// certificate is trusted, whatever its name and issuer are. The certificate is also shown to a
// server that asks for one. Unix sockets are plain text. Returns INVALID_ARGUMENT for files that
// can't be read or are not PEM files.
absl::StatusOr<std::shared_ptr<grpc::Channel>> ChannelToOwnServer(const std::string& address);

}  // namespace quantd::cli

#endif  // QUANTD_CLIENT_CLI_COMMANDS_OWN_SERVER_H_
