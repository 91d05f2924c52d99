// Where a server that listens can be reached from the same machine, or container.
#ifndef QUANTD_CLIENT_CLI_COMMANDS_LISTENER_H_
#define QUANTD_CLIENT_CLI_COMMANDS_LISTENER_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace quantd::cli {

// `listen`: the server's --listen, as QUANTD_LISTEN has it: HOST:PORT or unix:/PATH, several with
// commas. The first of them, as a client reaches it: 0.0.0.0 and [::] are 127.0.0.1, which both
// listen on, whether or not there is an IPv6. INVALID_ARGUMENT for port 0, which the server picks,
// and for what is no address.
absl::StatusOr<std::string> AddressOfListener(absl::string_view listen);

}  // namespace quantd::cli

#endif  // QUANTD_CLIENT_CLI_COMMANDS_LISTENER_H_
