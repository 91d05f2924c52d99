// Serializes responses.
#ifndef QUANTD_SERVER_HTTP_RESPONSE_H_
#define QUANTD_SERVER_HTTP_RESPONSE_H_

#include <string>

#include "absl/strings/string_view.h"

namespace quantd::http {

inline constexpr absl::string_view kPlainText = "text/plain";
// What Prometheus sends and expects: https://prometheus.io/docs/instrumenting/exposition_formats/
inline constexpr absl::string_view kPrometheusText = "text/plain; version=0.0.4; charset=utf-8";

inline constexpr absl::string_view kHtml = "text/html; charset=utf-8";
inline constexpr absl::string_view kJson = "application/json";

// `head`: send the headers that GET would have, without the body. Every response is the last one of
// its connection. `policy`: the Content-Security-Policy, for pages.
std::string Response(int status, absl::string_view content_type, absl::string_view body, bool head,
                     absl::string_view policy = "");

// A response whose body says what was wrong.
std::string ErrorResponse(int status, bool head);

}  // namespace quantd::http

#endif  // QUANTD_SERVER_HTTP_RESPONSE_H_
