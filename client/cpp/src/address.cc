#include "address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "status_macros.h"

namespace quantd::client {
namespace {

constexpr char kVariable[] = "QUANTD_ADDRESS";
constexpr int kDefaultPort = 50051;

// A valid port, the default one if there is none. gRPC itself reads 99999 as 34463, and a word as
// 0.
absl::StatusOr<std::string> PortOf(absl::string_view port, const std::string& address) {
  int number = 0;
  if (port.empty()) return absl::StrCat(kDefaultPort);
  if (port.find_first_not_of("0123456789") == absl::string_view::npos &&
      absl::SimpleAtoi(port, &number) && number > 0 && number < 1 << 16) {
    return std::string(port);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("address ", address, ": port '", port, "' must be a number from 1 to 65535"));
}

// Returns host:port for host, host:port, [IPv6], [IPv6]:port or a bare IPv6 address; errors show
// the whole address.
absl::StatusOr<std::string> WithPort(absl::string_view host, const std::string& address) {
  std::string name(host);
  absl::string_view port;
  if (absl::StartsWith(host, "[")) {
    const size_t end = host.find(']');
    if (end == absl::string_view::npos || (end + 1 < host.size() && host[end + 1] != ':')) {
      return absl::InvalidArgumentError(absl::StrCat(
          "address ", address, ": an address that begins with [ must be [IPv6] or [IPv6]:port"));
    }
    name = std::string(host.substr(0, end + 1));
    port = absl::StripPrefix(host.substr(end + 1), ":");
  } else if (std::count(host.begin(), host.end(), ':') > 1) {
    name = absl::StrCat("[", host, "]");
  } else if (const size_t colon = host.find(':'); colon != absl::string_view::npos) {
    name = std::string(host.substr(0, colon));
    port = host.substr(colon + 1);
  }
  if (name.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("address ", address, " names no host"));
  }
  QUANTD_ASSIGN_OR_RETURN(std::string number, PortOf(port, address));
  return absl::StrCat(name, ":", number);
}

// The number of characters before the hosts of an address, which are separated by commas; 0 if it
// is a host itself, and npos if its form is defined by its resolver.
size_t SchemeOf(absl::string_view address) {
  if (absl::StartsWith(address, "dns://")) {
    const size_t path = address.find('/', 6);  // after the name of the name server
    return path == absl::string_view::npos ? path : path + 1;
  }
  if (absl::StartsWith(address, "dns:")) return 4;
  for (const char* scheme : {"ipv4:", "ipv6:"}) {
    if (absl::StartsWith(address, scheme) && !absl::StrContains(address, "://")) return 5;
  }
  for (const char* scheme :
       {"unix:", "unix-abstract:", "vsock:", "xds:", "google-c2p:", "passthrough:"}) {
    if (absl::StartsWith(address, scheme)) return absl::string_view::npos;
  }
  return absl::StrContains(address, "://") ? absl::string_view::npos : 0;
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
  const size_t scheme = SchemeOf(address);
  if (scheme == std::string::npos) return address;
  if (scheme == 0) return WithPort(address, address);
  std::vector<std::string> hosts;
  for (const absl::string_view host :
       absl::StrSplit(absl::string_view(address).substr(scheme), ',')) {
    QUANTD_ASSIGN_OR_RETURN(std::string whole, WithPort(host, address));
    hosts.push_back(std::move(whole));
  }
  return absl::StrCat(absl::string_view(address).substr(0, scheme), absl::StrJoin(hosts, ","));
}

bool IsLocal(const std::string& target) {
  if (absl::StartsWith(target, "unix:") || absl::StartsWith(target, "unix-abstract:")) return true;
  const size_t scheme = SchemeOf(target);
  if (scheme == std::string::npos) return false;
  const std::vector<std::string> hosts =
      absl::StrSplit(absl::string_view(target).substr(scheme), ',');
  return std::all_of(hosts.begin(), hosts.end(), [](const std::string& host) {
    const std::string name = host.substr(0, host.rfind(':'));
    in_addr ipv4{};
    // Not by a prefix: 127.0.0.1.example.org is another machine.
    return name == "localhost" || name == "[::1]" ||
           (inet_pton(AF_INET, name.c_str(), &ipv4) == 1 && ntohl(ipv4.s_addr) >> 24 == 127);
  });
}

}  // namespace quantd::client
