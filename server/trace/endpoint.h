// The address of a collector of spans.
#ifndef QUANTD_SERVER_TRACE_ENDPOINT_H_
#define QUANTD_SERVER_TRACE_ENDPOINT_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace quantd::trace {

struct Endpoint {
  bool tls = false;
  std::string host;  // an IPv6 address is without brackets
  uint16_t port = 4318;
  std::string path = "/v1/traces";
};

// Parses --otlp_endpoint, http[s]://HOST[:PORT][/PATH]. The default port is 4318 (https: 443), the
// default path /v1/traces. Returns INVALID_ARGUMENT for anything else.
absl::StatusOr<Endpoint> ParseEndpoint(absl::string_view text);

// Parses OTEL_EXPORTER_OTLP_ENDPOINT, the base of every signal's path. The default port is that of
// the scheme, and v1/traces is appended to the path.
absl::StatusOr<Endpoint> ParseBaseEndpoint(absl::string_view text);

// Parses OTEL_EXPORTER_OTLP_TRACES_ENDPOINT. The default port is that of the scheme, the default
// path is /.
absl::StatusOr<Endpoint> ParseTracesEndpoint(absl::string_view text);

// HOST:PORT, as in the Host header and in log lines.
std::string HostAndPort(const Endpoint& endpoint);
// As a URL.
std::string Url(const Endpoint& endpoint);

}  // namespace quantd::trace

#endif  // QUANTD_SERVER_TRACE_ENDPOINT_H_
