#include "server/server.h"

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "quantd/targets.h"
#include "server/access/session.h"
#include "server/admission/admission.h"
#include "server/heartbeat.h"
#include "server/http/http.h"
#include "server/log/log.h"
#include "server/metrics/metrics.h"
#include "server/overload.h"
#include "server/process/every_second.h"
#include "server/process/limits.h"
#include "server/process/malloc.h"
#include "server/regions/regions.h"
#include "server/regions/sigbus_guard.h"
#include "server/rpc/backend.h"
#include "server/rpc/calls.h"
#include "server/rpc/health.h"
#include "server/rpc/reflection.h"
#include "server/rpc/router.h"
#include "server/scheduling/thread_pool.h"
#include "server/status.h"
#include "server/tls_and_tokens.h"
#include "server/trace/tracer.h"
#include "server/transport/transport.h"
#include "server/transport_numbers.h"

namespace quantd::server {
namespace {

using wire::Method;

// Added to the drain time.
constexpr std::chrono::milliseconds kLastWords{200};

absl::Status UseTarget(const Options& options) {
  if (absl::Status status = CheckEnvironmentTarget(); !status.ok() && options.simd.empty()) {
    return status;
  }
  return SelectTarget(options.simd);
}

std::string Http2Version() { return absl::StrCat("nghttp2/", nghttp2_version(0)->version_str); }

}  // namespace

// In order of dependency; destroyed in the opposite order.
struct Server::Components {
  Components(const Options& o, TlsAndTokens& g)
      : options(o),
        tls_and_tokens(g),
        policy(o.policy()),
        executors(policy.cores),
        cores(policy.cores),
        admission({o.memory.requests, o.max_inflight_requests, o.max_queued_requests}),
        receiving(o.memory.receiving, o.memory.window, o.max_queued_requests,
                  absl::ToChronoMilliseconds(o.stall_timeout)),
        metrics({QUANTD_VERSION, std::string(CurrentTarget()), Http2Version()},
                [this] { return Read(); }),
        backend{calls,
                admission,
                pool,
                metrics,
                nullptr,
                cores,
                executors,
                policy,
                o.memory.max_message,
                absl::ToChronoNanoseconds(o.queue_timeout),
                absl::ToChronoNanoseconds(o.stall_timeout),
                o.compress_answers,
                o.compress_answers_from},
        router(metrics, admission, g.tokens.get()),
        context{router, pool, receiving, TransportLimits(o), g.certificates.get()},
        health({std::string(wire::kServiceName)}, pool),
        info(ServerInfo(o)) {
    pool.Limit(o.memory.requests + o.memory.receiving);
  }

  metrics::Readings Read() const;
  std::string Status() const;
  // Whether requests have been waiting without a break for longer than one may wait.
  bool Crowded() const {
    return admission.crowded_for() > absl::ToChronoNanoseconds(options.queue_timeout);
  }
  void AddRoutes(const AddServices& add_services);
  void AddTasks();
  // How many calls have ended.
  uint64_t Handled() const;

  const Options options;
  TlsAndTokens& tls_and_tokens;
  const scheduling::Policy policy;
  memory::Pool pool;
  const rpc::Executors executors;
  scheduling::ComputeSlots cores;
  admission::Admission admission;
  admission::Receiving receiving;
  metrics::Metrics metrics;
  std::unique_ptr<regions::Regions> regions;
  std::unique_ptr<trace::Tracer> tracer;  // before the first call; null: off
  rpc::Calls calls;
  rpc::Backend backend;
  rpc::Router router;
  transport::TransportContext context;
  rpc::Health health;
  std::unique_ptr<rpc::Reflection> reflection;
  const std::string info;
  // Answer the calls with one small response.
  rpc::Response response_info, check_health;
  Overload overload;  // used by EverySecond's thread, like the next
  process::MemoryKeeper memory_keeper;
  std::unique_ptr<Heartbeat> heartbeat;
  std::vector<std::unique_ptr<loop::Loop>> loops;
  std::unique_ptr<transport::Transport> transport;
  std::unique_ptr<scheduling::ThreadPool> thread_pool;
  std::vector<std::string> grpc_addresses;
  std::unique_ptr<http::HttpServer> http;
  std::atomic<bool> draining{false};  // its lame duck included; /readyz says so, health later
  process::EverySecond every_second;
};

metrics::Readings Server::Components::Read() const {
  metrics::Readings now;
  now.inflight_requests = static_cast<double>(admission.inflight_requests());
  now.inflight_bytes = static_cast<double>(admission.inflight_bytes());
  now.waiting = {static_cast<double>(receiving.waiting()),
                 static_cast<double>(admission.queued_requests()),
                 static_cast<double>(cores.waiting())};
  now.receiving_bytes = static_cast<double>(receiving.held_bytes());
  const uint64_t mapped = pool.used_bytes() + pool.kept_bytes();
  now.pool_bytes = static_cast<double>(pool.kept_bytes() + process::KeptByMalloc(mapped));
  if (regions != nullptr) {
    now.regions = static_cast<double>(regions->mappings());
    now.region_bytes = static_cast<double>(regions->mapped_bytes());
  }
  now.busy_cores = cores.busy();
  now.cores = cores.total();
  ReadCounters(context, now);
  now.certificate_expires = tls_and_tokens.CertificateEnd();
  now.draining = draining ? 1 : 0;
  now.guard_actions.back() = static_cast<double>(regions::CountDamaged());
  now.log_lines = static_cast<double>(log::Written());
  const log::Lost lost = log::CountLost();
  now.log_lost = {static_cast<double>(lost.repeated), static_cast<double>(lost.full),
                  static_cast<double>(lost.failed)};
  now.memory_limit_bytes = static_cast<double>(options.memory.limit);
  now.memory_budget_bytes = static_cast<double>(options.memory.requests);
  now.receive_budget_bytes = static_cast<double>(options.memory.receiving);
  now.max_connections = static_cast<double>(options.max_connections);
  if (tracer != nullptr) {
    now.spans_exported = static_cast<double>(tracer->written());
    now.spans_dropped = {static_cast<double>(tracer->dropped()),
                         static_cast<double>(tracer->failed())};
  }
  return now;
}

std::string Server::Components::Status() const {
  StatusFacts facts{"serving", grpc_addresses};
  if (!health.serving()) facts.state = "not ready";
  if (Crowded()) facts.state = "overloaded";
  if (draining) facts.state = "draining";
  return StatusJson(options, metrics, facts);
}

void Server::Components::AddRoutes(const AddServices& add_services) {
  const auto add_one = [this](const std::string& path, const rpc::Response& response,
                              const Method* method = nullptr) {
    const auto counted = method == nullptr ? std::nullopt : std::optional(*method);
    router.Add(
        path,
        [this, &response, method](transport::ServerCall& stream) {
          rpc::ServeOneResponse(calls, backend, stream, response, method);
        },
        counted);
  };
  for (const wire::MethodInfo& of : wire::kMethods) {
    const Method method = of.method;
    const std::string path = absl::StrCat("/", of.service, "/", of.name);
    const auto add = [&](rpc::Router::Start start) { router.Add(path, std::move(start), method); };
    switch (method) {
      case Method::kQuantize:
      case Method::kDequantize:
      case Method::kDynamicQuantize:
      case Method::kQuantizeEmbeddings:
        add([this, method](transport::ServerCall& stream) {
          rpc::ServeUnary(calls, backend, stream, method);
        });
        break;
      case Method::kStream:
        add([this](transport::ServerCall& stream) { rpc::ServeStream(calls, backend, stream); });
        break;
      case Method::kGetServerInfo:
        add_one(path, response_info, &of.method);
        break;
    }
  }
  response_info = [this](const transport::Message&) -> absl::StatusOr<memory::Piece> {
    return rpc::ToPiece(info, pool);
  };
  check_health = [this](const transport::Message& request) { return health.Check(request); };
  add_one("/grpc.health.v1.Health/Check", check_health);
  router.Add("/grpc.health.v1.Health/Watch", [this](transport::ServerCall& stream) {
    rpc::Health::ServeWatch(calls, health, stream);
  });
  router.Watch("/grpc.health.v1.Health/Watch");
  // Health checks need no token: they come from kubelets, load balancers and clients that choose.
  for (const char* method : {"Check", "Watch"}) {
    router.Open(absl::StrCat("/grpc.health.v1.Health/", method));
  }
  for (const char* version : {"v1", "v1alpha"}) {
    router.Add(absl::StrCat("/grpc.reflection.", version, ".ServerReflection/ServerReflectionInfo"),
               [this](transport::ServerCall& stream) {
                 rpc::Reflection::Serve(calls, *reflection, stream);
               });
  }
  if (add_services) add_services(router, calls, pool);
  reflection = std::make_unique<rpc::Reflection>(router.Services(), pool);
}

uint64_t Server::Components::Handled() const {
  uint64_t sum = 0;
  for (const wire::MethodInfo& of : wire::kMethods) {
    for (const metrics::Counter& counter : metrics.method(of.method).handled) {
      sum += counter.value();
    }
  }
  return sum;
}

void Server::Components::AddTasks() {
  every_second.Do([this] {
    pool.GiveBack();
    if (regions != nullptr) regions->Sweep();
    log::TellLeftOut();
    overload.Look(std::chrono::steady_clock::now(), metrics.rejections());
    memory_keeper.Look(pool.used_bytes() + pool.kept_bytes());
  });
  every_second.Do([this] { tls_and_tokens.Look(metrics); });
  every_second.Do([this] { heartbeat->Alive(); });  // so that the first who asks is told the truth
}

Server::Server(std::unique_ptr<TlsAndTokens> tls_and_tokens, std::unique_ptr<Components> components)
    : tls_and_tokens_(std::move(tls_and_tokens)), components_(std::move(components)) {}

Server::~Server() = default;

void Server::Reload() {
  if (!tls_and_tokens_->Reread()) return log::Info("SIGHUP: there are no files to reload");
  components_->every_second.Wake();
}

absl::Status Server::Check(const Options& options) {
  if (absl::Status status = UseTarget(options); !status.ok()) return status;
  if (absl::Status status = TlsAndTokens(options).Open(); !status.ok()) return status;
  if (options.shared_memory_dir.empty()) return absl::OkStatus();
  return regions::Regions::Open(options.shared_memory_dir, {}).status();
}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const Options& options,
                                                      const AddServices& add_services) {
  if (absl::Status status = UseTarget(options); !status.ok()) return status;
  const scheduling::Policy policy = options.policy();
  // Including those for HTTP, spans, and tasks of every second.
  const int threads = policy.threads() + 3;
  absl::Status tried = process::TryThreads(threads, "--threads and --event_loops");
  if (!tried.ok()) return tried;
  auto tls_and_tokens = std::make_unique<TlsAndTokens>(options);
  if (absl::Status status = tls_and_tokens->Open(); !status.ok()) return status;
  auto components = std::make_unique<Components>(options, *tls_and_tokens);
  Components& c = *components;
  if (!options.shared_memory_dir.empty()) {
    regions::Limits limits;
    // Then the page tables take at most a 32nd of it.
    limits.bytes = 16 * options.memory.limit;
    limits.holes = options.memory.region_holes;
    auto regions = regions::Regions::Open(options.shared_memory_dir, limits);
    if (!regions.ok()) return regions.status();
    c.regions = *std::move(regions);
    c.backend.regions = c.regions.get();
  }
  if (!options.trace_file.empty()) {
    absl::StatusOr<std::unique_ptr<trace::Tracer>> tracer =
        trace::Tracer::Open(options.trace_file, options.trace_sample_ratio, QUANTD_VERSION);
    if (!tracer.ok()) return tracer.status();
    c.tracer = *std::move(tracer);
    c.backend.tracer = c.tracer.get();
  }
  c.AddRoutes(add_services);
  c.executors.of(policy.cores).StartThreads();

  std::vector<loop::Loop*> loops;
  for (int i = 0; i < c.policy.loops; ++i) {
    absl::StatusOr<std::unique_ptr<loop::Loop>> loop = loop::Loop::Create(policy.busy_poll);
    if (!loop.ok()) return loop.status();
    loops.push_back(c.loops.emplace_back(*std::move(loop)).get());
  }
  c.transport = std::make_unique<transport::Transport>(c.context, loops);
  for (const std::string& address : options.listen) {
    absl::StatusOr<std::string> bound = c.transport->Listen(address, options.socket_mode);
    if (!bound.ok()) return bound.status();
    c.grpc_addresses.push_back(*std::move(bound));
  }
  if (c.transport->beyond_loopback()) tls_and_tokens->WarnOfPlainText(c.grpc_addresses);
  c.heartbeat = std::make_unique<Heartbeat>(loops);
  if (!options.http_listen.empty()) {
    http::HttpPages pages;
    pages.metrics = [&c] { return c.metrics.Text(); };
    pages.live = [&c] { return c.heartbeat->Alive(); };
    pages.ready = [&c] { return c.health.serving() && !c.draining && !c.Crowded(); };
    if (options.status_page) {
      pages.status_json = [&c] { return c.Status(); };
      pages.status_page = [&c] { return StatusPage(c.Status()); };
      pages.status_policy = StatusPolicy();
    }
    const http::HttpAccess access{tls_and_tokens->certificates.get(), tls_and_tokens->tokens.get()};
    http::HttpLimits limits;
    if (access.certificates != nullptr) limits.connections = memory::kTlsHttpConnections;
    absl::StatusOr<std::unique_ptr<http::HttpServer>> http =
        http::HttpServer::Start(options.http_listen, std::move(pages), limits, access);
    if (!http.ok()) return http.status();
    c.http = *std::move(http);
  }
  c.thread_pool = std::make_unique<scheduling::ThreadPool>(loops, c.policy.spare);
  c.backend.thread_pool = c.thread_pool.get();
  c.transport->Start();
  c.AddTasks();
  c.every_second.Start();
  c.health.SetServing(true);
  return std::unique_ptr<Server>(new Server(std::move(tls_and_tokens), std::move(components)));
}

const std::vector<std::string>& Server::grpc_addresses() const {
  return components_->grpc_addresses;
}

std::string Server::http_address() const {
  return components_->http == nullptr ? "" : components_->http->address();
}

std::vector<std::string> Server::notes() const {
  std::vector<std::string> notes = components_->transport->notes();
  if (components_->http != nullptr && !components_->http->note().empty()) {
    notes.push_back(components_->http->note());
  }
  return notes;
}

std::string Server::target() const { return std::string(CurrentTarget()); }

bool Server::Alive() const { return components_->heartbeat->Alive(); }

bool Server::Drain(absl::Duration lame_duck) {
  Components& c = *components_;
  const std::chrono::milliseconds half = absl::ToChronoMilliseconds(lame_duck / 2);
  const auto begin = std::chrono::steady_clock::now();
  const uint64_t connections = c.context.connections.taken(), calls = c.context.open_calls();
  const uint64_t handled = c.Handled();
  c.draining = true;
  std::this_thread::sleep_for(half);
  c.health.SetServing(false);
  std::this_thread::sleep_for(half);
  const auto end = std::chrono::steady_clock::now() + absl::ToChronoMilliseconds(c.options.drain);
  c.transport->StopListening();
  c.transport->GoAway();
  c.backend.draining = true;
  c.health.EndWatches();
  const bool finished = c.transport->WaitForConnections(end);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  log::Info("drained", {{"connections", connections},
                        {"calls", calls},
                        {"calls_finished", c.Handled() - handled},
                        {"calls_cut", c.context.open_calls()},
                        {"seconds", took.count()}});
  if (!finished) {
    c.transport->EndCalls(rpc::Draining());
    c.transport->WaitForConnections(end + kLastWords);
  }
  c.transport->Close();
  while (c.calls.live() > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const auto last = std::max(end, std::chrono::steady_clock::now()) + kLastWords;
  const bool looked = c.every_second.Stop(last);
  c.thread_pool.reset();
  if (c.tracer != nullptr) c.tracer->Close();
  return looked;
}

}  // namespace quantd::server
