// See server.h.
#include "server/server.h"

#include <grpcpp/ext/channelz_service_plugin.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "quantd/executor.h"
#include "quantd/targets.h"
#include "server/admission/admission.h"
#include "server/http/http.h"
#include "server/lifecycle/health.h"
#include "server/lifecycle/memory.h"
#include "server/metrics/metrics.h"
#include "server/rpc/backend.h"
#include "server/rpc/calls.h"
#include "server/rpc/queue.h"

namespace quantd::server {
namespace {

grpc::ByteBuffer Info(const Options& options) {
  v1::GetServerInfoResponse info;
  info.set_version(QUANTD_VERSION);
  info.set_target(std::string(CurrentTarget()));
  for (const std::string& target : SupportedTargets()) info.add_supported_targets(target);
  info.set_threads(options.threads);
  info.set_max_message_bytes(options.max_message_bytes);
  info.set_memory_budget_bytes(options.memory_budget_bytes);
  info.add_extensions("stream");
  const grpc::Slice bytes(info.SerializeAsString());
  return grpc::ByteBuffer(&bytes, 1);
}

metrics::Gauges GaugesOf(const admission::Admission& admission) {
  metrics::Gauges gauges;
  gauges.inflight_requests = [&admission] { return admission.inflight_requests(); };
  gauges.inflight_bytes = [&admission] { return admission.inflight_bytes(); };
  gauges.pool_bytes = [] { return lifecycle::KeptBytes(); };
  return gauges;
}

// A call whose first byte waits behind the upload of another one on its connection looks, to its
// client, as much in flight as that one; gRPC cancels it when it comes after the shutdown began. So
// goes on until nothing is being answered for a moment, but not for long where calls never cease.
void WaitForUploads(const std::atomic<int>& answering, absl::Duration at_most) {
  const absl::Time end = absl::Now() + at_most;
  int quiet = 0;
  while (quiet < 2 && absl::Now() < end) {
    quiet = answering.load() == 0 ? quiet + 1 : 0;
    if (quiet < 2) absl::SleepFor(absl::Milliseconds(10));
  }
}

}  // namespace

struct Server::Components {
  explicit Components(const Options& o)
      : options(o),
        pool(o.threads),
        admission({o.memory_budget_bytes, o.max_inflight_requests, o.max_queued_requests}),
        metrics(QUANTD_VERSION, std::string(CurrentTarget()), GaugesOf(admission)),
        backend{calls,  service,         admission,      metrics,
                pool,   inline_executor, o.inline_bytes, static_cast<uint64_t>(o.max_message_bytes),
                Info(o)},
        health({std::string(v1::QuantizationService::service_full_name())}),
        memory_keeper([this] { return admission.TakePeakBytes(); }) {}

  const Options options;
  const Executor pool;
  const Executor inline_executor{1};
  admission::Admission admission;
  metrics::Metrics metrics;
  rpc::Calls calls;
  rpc::Service service;
  rpc::Backend backend;
  lifecycle::Health health;
  lifecycle::MemoryKeeper memory_keeper;
  std::vector<std::unique_ptr<rpc::Queue>> queues;
  std::unique_ptr<grpc::Server> grpc_server;
  std::vector<std::string> grpc_addresses;
  std::unique_ptr<http::HttpServer> http;
};

Server::Server(std::unique_ptr<Components> components) : components_(std::move(components)) {}

Server::~Server() = default;

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const Options& options) {
  if (absl::Status status = CheckEnvironmentTarget(); !status.ok() && options.simd.empty()) {
    return status;
  }
  if (absl::Status status = SelectTarget(options.simd); !status.ok()) return status;
  auto components = std::make_unique<Components>(options);
  Components& c = *components;

  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  if (options.channelz) grpc::channelz::experimental::InitChannelzService();
  grpc::ServerBuilder builder;
  std::vector<int> ports(options.listen.size(), 0);
  for (size_t i = 0; i < options.listen.size(); ++i) {
    builder.AddListeningPort(options.listen[i], grpc::InsecureServerCredentials(), &ports[i]);
  }
  builder.RegisterService(&c.service);
  builder.RegisterService(&c.health);
  builder.SetMaxReceiveMessageSize(options.max_message_bytes);
  // gRPC compares with that limit only what it has decompressed, so a message of zeros could take a
  // thousand times its size. Tensors gain little by compression anyway.
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  // What is being received is not under a permit yet; this bounds it for all connections together.
  grpc::ResourceQuota quota("quantd");
  quota.Resize(options.memory_budget_bytes + (64 << 20));
  builder.SetResourceQuota(quota);
  // With it a port that another process has looks free.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  for (int i = 0; i < options.queues; ++i) {
    c.queues.push_back(std::make_unique<rpc::Queue>(builder.AddCompletionQueue()));
  }
  c.grpc_server = builder.BuildAndStart();
  for (size_t i = 0; i < ports.size(); ++i) {
    const std::string& address = options.listen[i];
    if (ports[i] == 0) {
      return absl::UnavailableError(absl::StrCat(
          "cannot listen on ", address, ": in use, or no address of this machine (--listen)"));
    }
    c.grpc_addresses.push_back(
        absl::StartsWith(address, "unix:")
            ? address
            : absl::StrCat(address.substr(0, address.rfind(':')), ":", ports[i]));
  }
  if (c.grpc_server == nullptr) return absl::UnavailableError("gRPC did not start");

  if (!options.http_listen.empty()) {
    http::HttpPages pages;
    pages.metrics = [&c] { return c.metrics.Text(); };
    pages.live = [] { return true; };
    pages.ready = [&c] { return c.health.serving(); };
    absl::StatusOr<std::unique_ptr<http::HttpServer>> http =
        http::HttpServer::Start(options.http_listen, std::move(pages));
    if (!http.ok()) {
      c.grpc_server->Shutdown();
      return http.status();
    }
    c.http = *std::move(http);
  }
  for (const std::unique_ptr<rpc::Queue>& queue : c.queues) {
    rpc::ServeAll(c.backend, *queue);
    lifecycle::Health::ServeWatch(c.calls, c.health, *queue);
    queue->Start(options.pollers);
  }
  c.health.SetServing(true);
  return std::unique_ptr<Server>(new Server(std::move(components)));
}

const std::vector<std::string>& Server::grpc_addresses() const {
  return components_->grpc_addresses;
}

std::string Server::http_address() const {
  return components_->http == nullptr ? "" : components_->http->address();
}

std::string Server::target() const { return std::string(CurrentTarget()); }

void Server::Drain() {
  Components& c = *components_;
  c.health.SetServing(false);
  std::this_thread::sleep_for(absl::ToChronoMilliseconds(c.options.lame_duck));
  WaitForUploads(c.backend.answering, std::min(c.options.drain / 2, absl::Seconds(2)));
  c.backend.draining = true;
  c.health.EndWatches();
  c.grpc_server->Shutdown(std::chrono::system_clock::now() +
                          absl::ToChronoMilliseconds(c.options.drain));
  c.calls.WaitForNone();
  for (const std::unique_ptr<rpc::Queue>& queue : c.queues) queue->Shutdown();
}

}  // namespace quantd::server
