#include "server/rpc/health.h"

#include <optional>
#include <utility>

#include "server/loop/event.h"
#include "server/rpc/call_metrics.h"
#include "server/rpc/exchange.h"
#include "server/wire/encode.h"

namespace quantd::rpc {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

namespace {

std::set<std::string> WithServer(std::vector<std::string> services) {
  std::set<std::string> all(services.begin(), services.end());
  all.insert("");
  return all;
}

}  // namespace

// The entry of a Watch stream that waits for changes.
class Health::Watcher final : public transport::Cancellable {
 public:
  Watcher(Health& health, transport::ServerCall& stream) : health_(health), stream_(stream) {
    stream_.WaitsFor(this);
  }
  ~Watcher() { stream_.WaitsFor(nullptr); }

  // Completes `changed` with true if the state is not `version`, or with false if the stream is
  // interrupted.
  void Wait(uint64_t version, loop::Event& changed) {
    const std::lock_guard lock(health_.mutex_);
    changed_ = &changed;
    if (stream_.interrupted()) {
      Tell(false);
    } else if (health_.version_ != version) {
      Tell(true);
    } else {
      health_.waiting_.insert(this);
    }
  }
  void Tell(bool ok) { stream_.loop().Complete(*changed_, ok); }

  void Cancel() override {
    const std::lock_guard lock(health_.mutex_);
    if (health_.waiting_.erase(this) > 0) Tell(false);
  }

 private:
  Health& health_;
  transport::ServerCall& stream_;
  loop::Event* changed_ = nullptr;
};

Health::Health(std::vector<std::string> services, memory::Pool& pool)
    : services_(WithServer(std::move(services))), pool_(pool) {}

void Health::SetServing(bool serving) { Change(serving, false); }

bool Health::serving() const {
  const std::lock_guard lock(mutex_);
  return serving_;
}

void Health::EndWatches() { Change(false, true); }

void Health::Change(bool serving, bool ended) {
  const std::lock_guard lock(mutex_);
  serving_ = serving;
  ended_ = ended;
  ++version_;
  for (Watcher* watcher : std::exchange(waiting_, {})) watcher->Tell(true);
}

Health::State Health::Get(const std::string& service) const {
  const std::lock_guard lock(mutex_);
  State state;
  state.ended = ended_;
  state.version = version_;
  if (services_.count(service) == 0) {
    state.status = HealthCheckResponse::SERVICE_UNKNOWN;
  } else {
    state.status = serving_ ? HealthCheckResponse::SERVING : HealthCheckResponse::NOT_SERVING;
  }
  return state;
}

absl::StatusOr<memory::Piece> Health::Check(const transport::Message& request) const {
  HealthCheckRequest parsed;
  if (absl::Status status = Parse(request, parsed); !status.ok()) return status;
  const State state = Get(parsed.service());
  if (state.status == HealthCheckResponse::SERVICE_UNKNOWN) {
    return absl::NotFoundError("this server has no such service");
  }
  HealthCheckResponse response;
  response.set_status(state.status);
  return wire::Serialize(response, pool_);
}

Call Health::ServeWatch(Calls& /*calls*/, Health& health, transport::ServerCall& stream) {
  {
    Exchange call(stream, health.pool_);
    loop::Event changed;
    const bool has_request = co_await call.Read();
    if (!has_request) call.Fail(NoRequestStatus(stream));
    // For an unknown name only this is kept, because Watch streams are long-lived.
    std::string service = "?";
    if (HealthCheckRequest request; has_request) {
      call.Take(request);
      if (health.services_.count(request.service()) != 0) service = request.service();
    }
    Watcher watcher(health, stream);
    std::optional<Status> told;
    while (call.ok()) {
      const State state = health.Get(service);
      if (told != state.status) {
        HealthCheckResponse response;
        response.set_status(state.status);
        const bool sent = co_await call.Write(response);
        if (!sent) break;  // the client is gone
        told = state.status;
      }
      if (state.ended) call.Fail(absl::UnavailableError("the server is draining"));
      if (!call.ok()) break;
      changed.Reset();
      watcher.Wait(state.version, changed);
      co_await changed;
    }
    co_await call.Finish();
  }
  stream.End();
}

}  // namespace quantd::rpc
