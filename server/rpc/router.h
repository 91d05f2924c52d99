// Maps methods to call functions: one table for all services.
#ifndef QUANTD_SERVER_RPC_ROUTER_H_
#define QUANTD_SERVER_RPC_ROUTER_H_

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "server/access/tokens.h"
#include "server/admission/admission.h"
#include "server/metrics/metrics.h"
#include "server/transport/transport_context.h"

namespace quantd::rpc {

class Router final : public transport::CallHandler {
 public:
  using Start = std::function<void(transport::ServerCall&)>;

  // `tokens`: every call needs one of them; null: no call does.
  Router(metrics::Metrics& metrics, const admission::Admission& admission,
         const access::Tokens* tokens)
      : metrics_(metrics), admission_(admission), tokens_(tokens) {}

  // Call before the first call. `path`: "/package.Service/Method"; `method`: the one that calls
  // count as, also refused ones.
  void Add(const std::string& path, Start start, std::optional<wire::Method> method = std::nullopt);
  // Calls of this method need no token. REQUIRES: added.
  void Open(const std::string& path) { routes_[numbers_.at(path)].needs_token = false; }
  // Calls of this method only wait for news. REQUIRES: added.
  void Watch(const std::string& path) { routes_[numbers_.at(path)].watches = true; }
  // Calls keep this header of their requests (Head::metadata); `name` is in lower case.
  void Keep(const std::string& name) { kept_.insert(name); }
  // The services that have a method, sorted by name.
  std::vector<std::string> Services() const;

  // Implements transport::CallHandler.
  int Find(absl::string_view path) const override;
  void Begin(transport::ServerCall& stream) override;
  wire::CallStatus Refuse(const transport::ServerCall& stream, int method,
                          const absl::Status& status) const override;
  absl::Status Authorize(int method, absl::string_view authorization) const override;
  bool Watches(int method) const override { return routes_[static_cast<size_t>(method)].watches; }
  uint64_t MostBytes(int method) const override;
  bool Keeps(absl::string_view name) const override {
    return !kept_.empty() && kept_.count(std::string(name)) != 0;
  }
  bool AnyoneWaits() const override { return admission_.anyone_waits(); }

 private:
  struct Route {
    Start start;
    std::optional<wire::Method> method;
    bool needs_token = true;
    bool watches = false;
  };
  metrics::Metrics& metrics_;
  const admission::Admission& admission_;
  const access::Tokens* const tokens_;
  std::unordered_map<std::string, int> numbers_;
  std::vector<Route> routes_;
  std::set<std::string> kept_;
};

}  // namespace quantd::rpc

#endif  // QUANTD_SERVER_RPC_ROUTER_H_
