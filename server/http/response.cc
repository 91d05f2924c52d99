#include "server/http/response.h"

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace quantd::http {
namespace {

struct Status {
  int code;
  absl::string_view reason;       // in the status line
  absl::string_view explanation;  // for people at a terminal
};

constexpr Status kStatuses[] = {
    {200, "OK", ""},
    {400, "Bad Request", "this is not an HTTP request\n"},
    {401, "Unauthorized", "a token is required: Authorization: Bearer TOKEN\n"},
    {403, "Forbidden", "a client certificate is required\n"},
    {404, "Not Found",
     "not found; this port serves /, /status.json, /metrics, /livez and /readyz\n"},
    {405, "Method Not Allowed", "only GET and HEAD are allowed\n"},
    {408, "Request Timeout", "the request took too long\n"},
    {413, "Content Too Large", "a request must not have a body\n"},
    {414, "URI Too Long", "the request is too long\n"},
    {431, "Request Header Fields Too Large", "the request is too long\n"},
    {503, "Service Unavailable", ""},
    {505, "HTTP Version Not Supported", "only HTTP/1.0 and HTTP/1.1 are supported\n"},
};

const Status& StatusOf(int code) {
  for (const Status& status : kStatuses) {
    if (status.code == code) return status;
  }
  return kStatuses[1];
}

}  // namespace

std::string Response(int status, absl::string_view content_type, absl::string_view body, bool head,
                     absl::string_view policy) {
  return absl::StrCat(
      "HTTP/1.1 ", status, " ", StatusOf(status).reason,
      "\r\nDate: ", absl::FormatTime("%a, %d %b %Y %H:%M:%S GMT", absl::Now(), absl::UTCTimeZone()),
      // RFC 9110: 405 lists the allowed methods.
      status == 405 ? "\r\nAllow: GET, HEAD" : "",
      // 401 names the accepted schemes (RFC 6750); of the second, browsers ask for the password.
      status == 401 ? "\r\nWWW-Authenticate: Bearer"
                      "\r\nWWW-Authenticate: Basic realm=\"quantd: a token as the password\""
                    : "",
      policy.empty() ? "" : "\r\nContent-Security-Policy: ", policy,
      "\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer"
      "\r\nCache-Control: no-store",
      "\r\nContent-Type: ", content_type, "\r\nContent-Length: ", body.size(),
      "\r\nConnection: close\r\n\r\n", head ? "" : body);
}

std::string ErrorResponse(int status, bool head) {
  return Response(status, kPlainText, StatusOf(status).explanation, head);
}

}  // namespace quantd::http
