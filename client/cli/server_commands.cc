// quantctl info and quantctl health.
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <cstdio>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "commands.h"
#include "flags.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "method.h"
#include "quantd/client/status.h"
#include "report.h"

namespace quantd::cli {

namespace health = ::grpc::health::v1;

absl::Status RunInfo() {
  const absl::StatusOr<std::unique_ptr<Server>> server = ConnectByFlags();
  if (!server.ok()) return server.status();
  const v1::GetServerInfoResponse& info = (*server)->info();
  const std::vector<std::string> targets(info.supported_targets().begin(),
                                         info.supported_targets().end());
  const std::vector<std::string> extensions(info.extensions().begin(), info.extensions().end());
  if (absl::GetFlag(FLAGS_json)) {
    const Json json = {{"address", (*server)->address()},
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
      info.version().c_str(), (*server)->address().c_str(), info.target().c_str(),
      absl::StrJoin(targets, ", ").c_str(), info.threads(),
      BytesText(info.max_message_bytes()).c_str(), BytesText(info.memory_budget_bytes()).c_str(),
      absl::StrJoin(extensions, ", ").c_str());
  return absl::OkStatus();
}

absl::Status RunHealth() {
  const std::string address = absl::GetFlag(FLAGS_address);
  const client::Client client(address);
  const auto stub = health::Health::NewStub(client.channel());
  ::grpc::ClientContext context;
  // A health check that waits for minutes says nothing; five seconds unless told otherwise.
  const double seconds = std::min(absl::GetFlag(FLAGS_timeout), 5.0);
  context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(seconds)));
  health::HealthCheckRequest request;
  request.set_service(absl::GetFlag(FLAGS_service));
  health::HealthCheckResponse response;
  const absl::Status status = client::FromGrpc(stub->Check(&context, request, &response));
  if (absl::IsUnavailable(status)) return ServerError(status, address, "");
  if (!status.ok()) return ServerError(status, address, "check the server's health");
  const std::string name = health::HealthCheckResponse::ServingStatus_Name(response.status());
  if (response.status() != health::HealthCheckResponse::SERVING) {
    return ServerError(absl::FailedPreconditionError(name), address, "use the server");
  }
  if (absl::GetFlag(FLAGS_json)) {
    std::fputs(Dump({{"address", address}, {"status", name}}).c_str(), stdout);
  } else if (!absl::GetFlag(FLAGS_quiet)) {
    std::printf("%s\n", name.c_str());
  }
  return absl::OkStatus();
}

}  // namespace quantd::cli
