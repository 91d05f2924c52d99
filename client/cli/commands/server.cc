// quantctl info and quantctl health.
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "commands/commands.h"
#include "commands/own_server.h"
#include "engine/errors.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "quantd/client/client.h"
#include "quantd/client/status.h"
#include "status_macros.h"

namespace quantd::cli {

namespace health = ::grpc::health::v1;

namespace {

// Waiting for minutes is pointless: five seconds by default.
absl::Duration Patience(const Options& options) {
  return absl::Seconds(std::min(options.timeout, 5.0));
}

absl::Status CallError(const absl::Status& status, const std::string& address, const char* what) {
  const bool silent = absl::IsDeadlineExceeded(status);
  return OperationError(ServerError(silent ? absl::UnavailableError("no answer") : status, address),
                        what, "");
}

absl::StatusOr<std::shared_ptr<::grpc::Channel>> HealthChannel(const Options& options,
                                                               const std::string& address) {
  if (options.address.empty() && options.tls_ca.empty()) return ChannelToOwnServer(address);
  client::ClientOptions client_options = ClientOptionsOf(options, Patience(options));
  // A channel with health checks would not ask a server that reports NOT_SERVING.
  client_options.health_check = false;
  const client::Client client(address, client_options);
  if (!client.status().ok()) return OptionsError(client.status());
  return client.channel();
}

}  // namespace

absl::StatusOr<std::string> AddressOf(const Options& options) {
  if (!options.address.empty()) return options.address;
  const char* const listen = std::getenv("QUANTD_LISTEN");
  return listen == nullptr ? "127.0.0.1:50051" : AddressOfListener(listen);
}

absl::Status RunInfo(const Options& options) {
  QUANTD_ASSIGN_OR_RETURN(const std::string address, AddressOf(options));
  client::Client client(address, ClientOptionsOf(options, Patience(options)));
  if (!client.status().ok()) return OptionsError(client.status());
  const absl::StatusOr<v1::GetServerInfoResponse> response = client.GetServerInfo();
  if (!response.ok()) return CallError(response.status(), address, "ask the server");
  const v1::GetServerInfoResponse& info = *response;
  const std::vector<std::string> targets(info.supported_targets().begin(),
                                         info.supported_targets().end());
  const std::vector<std::string> extensions(info.extensions().begin(), info.extensions().end());
  if (options.json) {
    const Json json = {{"address", address},
                       {"version", info.version()},
                       {"target", info.target()},
                       {"supported_targets", targets},
                       {"threads", info.threads()},
                       {"max_message_bytes", info.max_message_bytes()},
                       {"memory_budget_bytes", info.memory_budget_bytes()},
                       {"extensions", extensions}};
    std::fputs(Dump(json).c_str(), stdout);
    return absl::OkStatus();
  }
  std::printf(
      "quantd %s at %s\n  target       %s  (of %s)\n  threads      %d\n  message      at most %s\n"
      "  memory       at most %s for all requests together\n  extensions   %s\n",
      info.version().c_str(), address.c_str(), info.target().c_str(),
      absl::StrJoin(targets, ", ").c_str(), info.threads(),
      BytesText(info.max_message_bytes()).c_str(), BytesText(info.memory_budget_bytes()).c_str(),
      absl::StrJoin(extensions, ", ").c_str());
  return absl::OkStatus();
}

absl::Status RunHealth(const Options& options) {
  QUANTD_ASSIGN_OR_RETURN(const std::string address, AddressOf(options));
  QUANTD_ASSIGN_OR_RETURN(const std::shared_ptr<::grpc::Channel> channel,
                          HealthChannel(options, address));
  const auto stub = health::Health::NewStub(channel);
  ::grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + Patience(options)));
  health::HealthCheckRequest request;
  request.set_service(options.service);
  health::HealthCheckResponse response;
  const absl::Status status = client::FromGrpc(stub->Check(&context, request, &response));
  if (!status.ok()) return CallError(status, address, "check the server's health");
  const std::string name = health::HealthCheckResponse::ServingStatus_Name(response.status());
  if (response.status() != health::HealthCheckResponse::SERVING) {
    return CallError(absl::FailedPreconditionError(name), address, "use the server");
  }
  if (options.json) {
    std::fputs(Dump({{"address", address}, {"status", name}}).c_str(), stdout);
  } else if (!options.quiet) {
    std::printf("%s\n", name.c_str());
  }
  return absl::OkStatus();
}

}  // namespace quantd::cli
