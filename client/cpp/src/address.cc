#include "address.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace quantd::client {
namespace {

constexpr char kVariable[] = "QUANTD_ADDRESS";
constexpr int kDefaultPort = 50051;

// HOST:PORT, whose port there must be: gRPC takes 99999 for 34463, and what is no number for 0.
absl::StatusOr<std::string> Checked(std::string address) {
  const std::string port = address.substr(address.rfind(':') + 1);
  int number = 0;
  if (port.find_first_not_of("0123456789") == std::string::npos &&
      absl::SimpleAtoi(port, &number) && number > 0 && number < 1 << 16) {
    return address;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("address ", address, ": port '", port, "' must be a number from 1 to 65535"));
}

}  // namespace

absl::StatusOr<std::string> TargetOf(const std::string& given) {
  const char* const variable = std::getenv(kVariable);
  std::string address = given.empty() && variable != nullptr ? variable : given;
  absl::StripAsciiWhitespace(&address);
  if (address.empty()) return absl::StrCat("127.0.0.1:", kDefaultPort);
  if (absl::StartsWith(address, "http://") || absl::StartsWith(address, "https://")) {
    return absl::InvalidArgumentError(absl::StrCat(
        "address ", address, ": quantd speaks gRPC; give host:port, and ca_file for TLS"));
  }
  if (absl::StartsWith(address, "[")) {  // [IPv6] or [IPv6]:port
    if (absl::EndsWith(address, "]")) return absl::StrCat(address, ":", kDefaultPort);
    if (absl::EndsWith(address, "]:")) return absl::StrCat(address, kDefaultPort);
    if (absl::StrContains(address, "]:")) return Checked(address);
    return absl::InvalidArgumentError(
        absl::StrCat("address ", address, ": what begins with [ is [IPv6] or [IPv6]:port"));
  }
  for (const char* scheme : {"unix:", "unix-abstract:", "vsock:", "dns:", "ipv4:", "ipv6:", "xds:",
                             "google-c2p:", "passthrough:"}) {
    if (absl::StartsWith(address, scheme)) return address;
  }
  const auto colons = std::count(address.begin(), address.end(), ':');
  if (absl::StrContains(address, "://")) return address;
  if (colons > 1) return absl::StrCat("[", address, "]:", kDefaultPort);
  if (address.front() == ':') {
    return absl::InvalidArgumentError(absl::StrCat("address ", address, " names no host"));
  }
  if (colons == 0) return absl::StrCat(address, ":", kDefaultPort);
  return address.back() == ':' ? absl::StrCat(address, kDefaultPort) : Checked(address);
}

bool IsLocal(const std::string& target) {
  for (const char* local : {"unix:", "127.", "localhost:", "[::1]"}) {
    if (absl::StartsWith(target, local)) return true;
  }
  return false;
}

}  // namespace quantd::client
