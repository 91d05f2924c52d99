#include "server/rpc/router.h"

#include <utility>

#include "server/rpc/call_metrics.h"
#include "server/transport/server_call.h"
#include "server/wire/call_status.h"
#include "server/wire/status_details.h"

namespace quantd::rpc {
namespace {

// The most bytes in the log of a path that a client has invented.
constexpr size_t kMostPath = 128;
// The most bytes of a request that contains at most a name: the generated parser also reads unknown
// fields, which become 24 times as large. Requests of health and reflection have no permit.
constexpr uint64_t kMostOfAName = 12 << 10;

bool IsAName(std::optional<wire::Method> method) {
  return !method.has_value() || *method == wire::Method::kGetServerInfo;
}

}  // namespace

void Router::Add(const std::string& path, Start start, std::optional<wire::Method> method) {
  numbers_[path] = static_cast<int>(routes_.size());
  routes_.push_back({std::move(start), method});
}

std::vector<std::string> Router::Services() const {
  std::set<std::string> services;
  for (const auto& numbered : numbers_) {
    const std::string& path = numbered.first;
    services.insert(path.substr(1, path.rfind('/') - 1));
  }
  return {services.begin(), services.end()};
}

int Router::Find(absl::string_view path) const {
  const auto found = numbers_.find(std::string(path));
  return found == numbers_.end() ? -1 : found->second;
}

void Router::Begin(transport::ServerCall& stream) { routes_[stream.method()].start(stream); }

absl::Status Router::Authorize(int method, absl::string_view authorization) const {
  if (tokens_ == nullptr) return absl::OkStatus();
  if (method >= 0 && !routes_[static_cast<size_t>(method)].needs_token) return absl::OkStatus();
  absl::Status status = tokens_->Check(authorization, "metadata");
  return status.ok() ? status : wire::WithReason(std::move(status), "UNAUTHENTICATED");
}

uint64_t Router::MostBytes(int method) const {
  return IsAName(routes_[static_cast<size_t>(method)].method) ? kMostOfAName : UINT64_MAX;
}

wire::CallStatus Router::Refuse(const transport::ServerCall& stream, int method,
                                const absl::Status& status) const {
  const std::optional<wire::Method> counted =
      method < 0 ? std::nullopt : routes_[static_cast<size_t>(method)].method;
  if (counted.has_value()) {
    metrics::MethodMetrics& counts = metrics_.method(*counted);
    counts.started.Add(1);
    counts.handled[static_cast<size_t>(status.code())].Add(1);
  }
  if (counted.has_value() || absl::IsUnauthenticated(status)) {
    metrics_.CountRejection(wire::Reason(status));
  }
  LogFailure(Failed::kCall, stream.head().path().substr(0, kMostPath), status, stream);
  return wire::ToCallStatus(status);
}

}  // namespace quantd::rpc
