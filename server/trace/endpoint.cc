#include "server/trace/endpoint.h"

#include <event2/http.h>

#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "server/access/pem.h"

namespace quantd::trace {
namespace {

using Uri = std::unique_ptr<evhttp_uri, access::Free<evhttp_uri_free>>;

constexpr uint16_t kHttpPort = 80;
constexpr uint16_t kHttpsPort = 443;
constexpr uint16_t kOtlpPort = 4318;

// Keeps the path as written, "" or "/" if there is none.
absl::StatusOr<Endpoint> Parse(absl::string_view text, uint16_t http_port) {
  const Uri uri(evhttp_uri_parse(std::string(text).c_str()));
  // Users, queries and fragments may be passwords or keys, which must not be logged.
  const bool secret = text.find_first_of("@?#") != absl::string_view::npos;
  absl::Status wrong = absl::InvalidArgumentError(
      absl::StrCat(secret ? "has a user, a query or a fragment" : absl::StrCat("is '", text, "'"),
                   ", must be http[s]://HOST[:PORT][/PATH]"));
  if (uri == nullptr || evhttp_uri_get_host(uri.get()) == nullptr ||
      evhttp_uri_get_scheme(uri.get()) == nullptr) {
    return wrong;
  }
  const absl::string_view scheme = evhttp_uri_get_scheme(uri.get());
  const int port = evhttp_uri_get_port(uri.get());
  absl::string_view host = evhttp_uri_get_host(uri.get());
  if (absl::ConsumePrefix(&host, "[")) absl::ConsumeSuffix(&host, "]");
  Endpoint endpoint;
  endpoint.tls = absl::EqualsIgnoreCase(scheme, "https");
  endpoint.host = std::string(host);
  if ((!endpoint.tls && !absl::EqualsIgnoreCase(scheme, "http")) || host.empty() || port == 0 ||
      port > 65535 || evhttp_uri_get_userinfo(uri.get()) != nullptr ||
      evhttp_uri_get_query(uri.get()) != nullptr || evhttp_uri_get_fragment(uri.get()) != nullptr) {
    return wrong;
  }
  endpoint.port = port > 0 ? static_cast<uint16_t>(port) : endpoint.tls ? kHttpsPort : http_port;
  endpoint.path = evhttp_uri_get_path(uri.get());
  return endpoint;
}

}  // namespace

absl::StatusOr<Endpoint> ParseEndpoint(absl::string_view text) {
  absl::StatusOr<Endpoint> endpoint = Parse(text, kOtlpPort);
  if (endpoint.ok() && (endpoint->path.empty() || endpoint->path == "/")) {
    endpoint->path = Endpoint().path;
  }
  return endpoint;
}

absl::StatusOr<Endpoint> ParseBaseEndpoint(absl::string_view text) {
  absl::StatusOr<Endpoint> endpoint = Parse(text, kHttpPort);
  if (endpoint.ok()) {
    absl::StrAppend(&endpoint->path, absl::EndsWith(endpoint->path, "/") ? "" : "/", "v1/traces");
  }
  return endpoint;
}

absl::StatusOr<Endpoint> ParseTracesEndpoint(absl::string_view text) {
  absl::StatusOr<Endpoint> endpoint = Parse(text, kHttpPort);
  if (endpoint.ok() && endpoint->path.empty()) endpoint->path.push_back('/');
  return endpoint;
}

std::string HostAndPort(const Endpoint& endpoint) {
  const bool brackets = absl::StrContains(endpoint.host, ':');
  return absl::StrCat(brackets ? "[" : "", endpoint.host, brackets ? "]" : "", ":", endpoint.port);
}

std::string Url(const Endpoint& endpoint) {
  return absl::StrCat(endpoint.tls ? "https://" : "http://", HostAndPort(endpoint), endpoint.path);
}

}  // namespace quantd::trace
