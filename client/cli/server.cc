#include "server.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "quantd/client/status.h"

namespace quantd::cli {
namespace {

constexpr char kServerErrorPayload[] = "quantctl/server-error";

// What a person can do about it; empty when the server's own words say it.
std::string Advice(const absl::Status& status, absl::string_view address) {
  if (absl::IsUnavailable(status) && !client::RetryDelay(status).has_value()) {
    return absl::StrCat("\nIs quantd running there? Start it with: quantd --listen=", address,
                        "\nor name another server with --address or QUANTD_ADDRESS.");
  }
  if (absl::IsDeadlineExceeded(status)) return "\nGive it more time with --timeout (seconds).";
  if (absl::IsUnavailable(status)) return "\nThe server is busy; try again.";
  if (absl::IsUnimplemented(status)) {
    return "\nThis server does not have it: see quantctl info, and quantctl --help.";
  }
  if (absl::StrContains(status.message(), "NaN") || absl::StrContains(status.message(), "finite")) {
    return "\n--non_finite=ignore leaves such elements out of the range.";
  }
  return "";
}

}  // namespace

Server::Server(const std::string& address, absl::Duration timeout)
    : address_(address), client_(address, {.timeout = timeout}) {}

absl::StatusOr<std::unique_ptr<Server>> Server::Connect(const std::string& address,
                                                        absl::Duration connect_timeout,
                                                        absl::Duration timeout) {
  absl::StatusOr<v1::GetServerInfoResponse> info =
      client::Client(address, {.timeout = connect_timeout}).GetServerInfo();
  if (absl::IsDeadlineExceeded(info.status())) {
    return ServerError(absl::UnavailableError(absl::StrCat("no answer within ",
                                                           absl::FormatDuration(connect_timeout))),
                       address, "");
  }
  if (!info.ok()) return ServerError(info.status(), address, "");
  std::unique_ptr<Server> server(new Server(address, timeout));
  server->info_ = *std::move(info);
  return server;
}

absl::Status ServerError(const absl::Status& status, absl::string_view address,
                         absl::string_view what) {
  std::string text;
  if (absl::IsUnavailable(status) && what.empty()) {
    text = absl::StrCat("cannot reach ", address, ": ", status.message());
  } else {
    text = absl::StrCat("cannot ", what.empty() ? "ask the server" : what, ": ", status.message(),
                        " (", absl::StatusCodeToString(status.code()));
    for (const client::FieldViolation& violation : client::FieldViolations(status)) {
      absl::StrAppend(&text, ", field ", violation.field);
    }
    absl::StrAppend(&text, ", from ", address, ")");
  }
  absl::Status result(status.code(), absl::StrCat(text, Advice(status, address)));
  result.SetPayload(kServerErrorPayload, absl::Cord("1"));
  return result;
}

bool IsServerError(const absl::Status& status) {
  return status.GetPayload(kServerErrorPayload).has_value();
}

}  // namespace quantd::cli
