#include "connection.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <random>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "address.h"

namespace quantd::client {
namespace {

// deploy/service_config.json without its retries, because gRPC's own retries ignore RetryInfo.
constexpr char kBalanced[] = R"({"loadBalancingConfig": [{"round_robin": {}}])";
constexpr char kHealthChecked[] = R"(, "healthCheckConfig": {"serviceName": ""}})";
// How often a name may be resolved again, which finds new servers: gRPC's default is 30 s, in which
// a rolling restart may replace all known servers.
constexpr int kBetweenLookUpsMilliseconds = 5'000;
// When a failed connection is retried, and how often at least: gRPC's defaults are 1 s and two
// minutes.
constexpr int kFirstReconnectMilliseconds = 100;
constexpr int kLastReconnectMilliseconds = 1000;
// Waits if the server does not say when to retry: they grow from the first to the second, and are
// random, so that clients do not come back together.
constexpr absl::Duration kFirstWait = absl::Milliseconds(50);
constexpr absl::Duration kLongestWait = absl::Seconds(1);

// gRPC's words for a call that was sent nowhere.
constexpr char kNoConnection[] = "Failed to connect to remote host";
constexpr char kUnhealthy[] = "backend unhealthy";

absl::Duration RandomWait(int attempt) {
  static thread_local std::minstd_rand random(std::random_device{}());
  const absl::Duration most = std::min(kFirstWait * (1 << std::min(attempt - 1, 8)), kLongestWait);
  return most * std::uniform_real_distribution<>(0, 1)(random);
}

}  // namespace

Connection::Connection(const std::string& address, const ClientOptions& options)
    : options_(options) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  arguments.SetInt(GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS, kBetweenLookUpsMilliseconds);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kFirstReconnectMilliseconds);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kLastReconnectMilliseconds);
  const absl::StatusOr<std::string> target = TargetOf(address);
  const absl::StatusOr<Credentials> credentials = CredentialsOf(options.tls);
  status_ = target.ok() ? credentials.status() : target.status();
  absl::StatusOr<std::unique_ptr<TokenFile>> token = TokenFile::Open(options.auth_token_file);
  if (status_.ok()) status_ = token.status();
  if (status_.ok() && *token != nullptr && !credentials->tls && !options.allow_insecure_token &&
      !IsLocal(*target)) {
    status_ = absl::InvalidArgumentError(
        absl::StrCat("auth_token_file: ", (*token)->path(), ": ", *target,
                     " is another machine and there is no TLS, so anyone on the network path could "
                     "read the token"));
  }
  if (status_.ok()) token_ = *std::move(token);
  // gRPC uses http_proxy even for this machine, where no proxy can help.
  if (target.ok() && IsLocal(*target)) arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // Without credentials it is a channel on which every call fails.
  const auto connect = [&](const char* health) {
    grpc::ChannelArguments all = arguments;
    all.SetServiceConfigJSON(absl::StrCat(kBalanced, health));
    return grpc::CreateCustomChannel(target.value_or(address),
                                     status_.ok() ? credentials->credentials : nullptr, all);
  };
  channel_ = connect(options.health_check ? kHealthChecked : "}");
  tls_ = status_.ok() && credentials->tls;
  stub_ = v1::QuantizationService::NewStub(channel_);
  any_stub_ = v1::QuantizationService::NewStub(connect("}"));
}

Connection::~Connection() {
  std::unique_lock<std::mutex> lock(mutex_);
  idle_.wait(lock, [this] { return jobs_ == 0; });
}

void Connection::Prepare(grpc::ClientContext& context, const Attempts& attempts) const {
  context.set_deadline(absl::ToChronoTime(attempts.deadline));
  context.set_wait_for_ready(!attempts.nobody.ok());
  if (token_ != nullptr) context.AddMetadata("authorization", token_->Authorization());
}

void Connection::TellTiming(const grpc::ClientContext& context) const {
  const auto& trailers = context.GetServerTrailingMetadata();
  const auto timing = trailers.find("quantd-timing-us");
  if (timing != trailers.end()) {
    options_.on_timing(std::string(timing->second.data(), timing->second.size()));
  }
}

absl::Status Connection::Explain(const grpc::Status& status) const {
  absl::Status result = FromGrpc(status);
  if (!tls_ || !absl::IsUnavailable(result) || RetryDelay(result).has_value()) return result;
  return absl::Status(
      result.code(),
      absl::StrCat(
          result.message(),
          " (this client uses TLS, as its options or QUANTD_TLS_CA, QUANTD_TLS_CERT and "
          "QUANTD_TLS_KEY say: the server must use it, too, with a certificate for this address)"));
}

std::optional<absl::Duration> Connection::WaitAfter(absl::Status& status,
                                                    Attempts& attempts) const {
  if (absl::IsDeadlineExceeded(status) && !attempts.nobody.ok()) status = attempts.nobody;
  if (!absl::IsUnavailable(status) || options_.max_attempts <= 1) return std::nullopt;
  const std::optional<absl::Duration> delay = RetryDelay(status);
  const bool unhealthy = absl::StrContains(status.message(), kUnhealthy);
  const bool nobody = absl::StrContains(status.message(), kNoConnection);
  if (nobody) attempts.nobody = status;
  const bool untouched = delay.has_value() || unhealthy || nobody;
  if (!untouched && ++attempts.lost >= options_.max_attempts) return std::nullopt;
  if (unhealthy && !std::exchange(attempts.any, true)) return absl::ZeroDuration();
  ++attempts.failed;
  const absl::Duration wait =
      delay.has_value() ? std::max(*delay * std::min(attempts.failed, 5), absl::ZeroDuration())
                        : RandomWait(attempts.failed);
  if (wait > attempts.deadline - absl::Now()) return std::nullopt;
  return wait;
}

absl::StatusOr<ServerLimits> Connection::Limits(bool refresh, Cancellation* cancellation) {
  if (const std::optional<ServerLimits> known = KnownLimits(); known.has_value() && !refresh) {
    return *known;
  }
  const absl::StatusOr<v1::GetServerInfoResponse> info =
      Call(&v1::QuantizationService::Stub::GetServerInfo, v1::GetServerInfoRequest(), cancellation);
  ServerLimits limits;
  if (info.ok()) {
    if (info->max_message_bytes() > 0) limits.message_bytes = info->max_message_bytes();
    if (info->memory_budget_bytes() > 0) limits.budget_bytes = info->memory_budget_bytes();
  } else if (!absl::IsUnimplemented(info.status())) {
    return info.status();
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  limits_ = limits;
  return limits;
}

std::optional<ServerLimits> Connection::KnownLimits() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return limits_;
}

void Connection::Start(std::function<void()> job) {
  JobBegan();
  try {
    std::thread([this, job = std::move(job)]() mutable {
      job();
      job = nullptr;  // frees what it holds before the connection may be destroyed
      JobEnded();
    }).detach();
  } catch (...) {  // the system has no threads left
    JobEnded();
    throw;
  }
}

void Connection::JobBegan() {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++jobs_;
}

void Connection::JobEnded() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (--jobs_ == 0) idle_.notify_all();
}

}  // namespace quantd::client
