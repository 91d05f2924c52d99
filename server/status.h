// What the server shows of itself: the response of GetServerInfo, and for people /status.json and
// the page at / that draws it. The names in the JSON are a contract: deploy/OPERATIONS.md lists
// them.
#ifndef QUANTD_SERVER_STATUS_H_
#define QUANTD_SERVER_STATUS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/metrics/metrics.h"
#include "server/options/options.h"

namespace quantd::server {

// What the metrics do not have.
struct StatusFacts {
  absl::string_view state;  // "serving", "overloaded", "draining" or "not ready"
  std::vector<std::string> grpc_addresses;
};

// One object. Reads the same counters as /metrics, and counts nothing itself.
std::string StatusJson(const Options& options, const metrics::Metrics& metrics,
                       const StatusFacts& facts);

// The page. For browsers without script it contains the figures of `json`, a StatusJson.
std::string StatusPage(absl::string_view json);

// Content-Security-Policy of the page: nothing but the page's own script and style.
const std::string& StatusPolicy();

// The encoded GetServerInfoResponse: facts that do not change while the server runs.
std::string ServerInfo(const Options& options);

}  // namespace quantd::server

#endif  // QUANTD_SERVER_STATUS_H_
