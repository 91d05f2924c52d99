// See access.h.
#include "server/options/access.h"

#include <algorithm>
#include <cstdint>

#include "absl/flags/flag.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

ABSL_FLAG(
    std::string, tls_cert, "",
    "PEM file with the server's certificate and those that lead to its authority: TCP "
    "addresses, of gRPC and of HTTP, then speak TLS and nothing else; Unix sockets stay plain. "
    "Read again when it changes, and on SIGHUP; empty: no TLS");
ABSL_FLAG(std::string, tls_key, "", "PEM file with the key of --tls_cert, without a password");
ABSL_FLAG(std::string, tls_client_ca, "",
          "PEM file with authorities: a TLS client needs a certificate of one of them, but for "
          "/livez and /readyz; empty: none");
ABSL_FLAG(
    std::string, auth_token_file, "",
    "File with tokens, one a line: calls need 'authorization: Bearer TOKEN' with one of them, "
    "but for health, and so does /metrics. Read again when it changes, and on SIGHUP; empty: "
    "none");
ABSL_FLAG(std::string, socket_mode, "0660",
          "Permissions of Unix sockets, octal: who may write to one may connect");

namespace quantd::server {
namespace {

// Permissions in octal, 0600 to 0777: the server's own user must get in.
absl::StatusOr<uint32_t> SocketMode() {
  const std::string text = absl::GetFlag(FLAGS_socket_mode);
  uint32_t mode = 0;
  const bool octal =
      !text.empty() && text.size() <= 5 && std::all_of(text.begin(), text.end(), [&mode](char c) {
        mode = 8 * mode + static_cast<uint32_t>(c - '0');
        return c >= '0' && c <= '7';
      });
  if (octal && mode >= 0600 && mode <= 0777) return mode;
  return absl::InvalidArgumentError(
      absl::StrCat("--socket_mode is '", text, "', must be octal, 0600 to 0777"));
}

}  // namespace

absl::Status CheckAccess() {
  const std::string cert = absl::GetFlag(FLAGS_tls_cert);
  const std::string key = absl::GetFlag(FLAGS_tls_key);
  if (cert.empty() != key.empty()) {
    return absl::InvalidArgumentError(
        cert.empty() ? "--tls_key is given, --tls_cert is not: TLS needs both"
                     : "--tls_cert is given, --tls_key is not: TLS needs both");
  }
  if (cert.empty() && !absl::GetFlag(FLAGS_tls_client_ca).empty()) {
    return absl::InvalidArgumentError(
        "--tls_client_ca is given, --tls_cert and --tls_key are not: clients show certificates in "
        "TLS only");
  }
  return SocketMode().status();
}

void FillAccess(Options& options, memory::Wanted& wanted) {
  options.tls = {absl::GetFlag(FLAGS_tls_cert), absl::GetFlag(FLAGS_tls_key),
                 absl::GetFlag(FLAGS_tls_client_ca)};
  options.auth_token_file = absl::GetFlag(FLAGS_auth_token_file);
  options.socket_mode = SocketMode().value_or(0);
  wanted.tls = !options.tls.certificate.empty();
}

std::string SocketModeText(const Options& options) {
  return absl::StrFormat("0%o", options.socket_mode);
}

}  // namespace quantd::server
