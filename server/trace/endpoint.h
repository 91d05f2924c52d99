// Where a collector of spans is.
#ifndef QUANTD_SERVER_TRACE_ENDPOINT_H_
#define QUANTD_SERVER_TRACE_ENDPOINT_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace quantd::trace {

struct Endpoint {
  bool tls = false;
  std::string host;  // an address of IPv6 without its brackets
  uint16_t port = 4318;
  std::string path = "/v1/traces";
};

// http[s]://HOST[:PORT][/PATH] of --otlp_endpoint: without a port 4318 (https: 443), without a path
// /v1/traces. INVALID_ARGUMENT for everything else.
absl::StatusOr<Endpoint> ParseEndpoint(absl::string_view text);

// That of OTEL_EXPORTER_OTLP_ENDPOINT, the base of every signal's path: without a port it is that
// of the scheme, and v1/traces follows the path.
absl::StatusOr<Endpoint> ParseBaseEndpoint(absl::string_view text);

// That of OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: without a port it is that of the scheme, without a
// path it is /.
absl::StatusOr<Endpoint> ParseTracesEndpoint(absl::string_view text);

// HOST:PORT, as the header Host and log lines have it.
std::string HostAndPort(const Endpoint& endpoint);
// As a URL.
std::string Url(const Endpoint& endpoint);

}  // namespace quantd::trace

#endif  // QUANTD_SERVER_TRACE_ENDPOINT_H_
