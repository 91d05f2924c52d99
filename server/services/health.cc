// See health.h.
#include "server/services/health.h"

#include <optional>
#include <utility>

#include "server/loop/event.h"
#include "server/services/messages.h"
#include "server/wire/status_details.h"

namespace quantd::services {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

namespace {

std::set<std::string> WithServer(std::vector<std::string> services) {
  std::set<std::string> all(services.begin(), services.end());
  all.insert("");
  return all;
}

}  // namespace

// One Watch stream's place among those that are told of a change.
class Health::Watcher final : public transport::Cancellable {
 public:
  Watcher(Health& health, transport::Stream& stream) : health_(health), stream_(stream) {
    stream_.WaitsFor(this);
  }
  ~Watcher() { stream_.WaitsFor(nullptr); }

  // Completes `changed` with true when the state is another than `version`, with false when the
  // stream is interrupted.
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
  transport::Stream& stream_;
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
  return Serialize(response, pool_);
}

rpc::Call Health::ServeWatch(rpc::Calls& /*calls*/, Health& health, transport::Stream& stream) {
  loop::Event read, written, changed, finished;
  absl::Status end = absl::InvalidArgumentError("the call has no request");
  {
    transport::Message message;
    stream.Read(message, read);
    const bool has_request = co_await read;
    HealthCheckRequest request;  // some 4 KiB at most: see Router::MostBytes
    if (has_request) {
      end = Parse(message, request);
    } else if (stream.interrupted()) {
      end = stream.interruption();  // too large, for one
    }
    message = transport::Message();
    stream.Taken();
    Watcher watcher(health, stream);
    std::optional<Status> told;
    while (end.ok() && !stream.interrupted()) {
      const State state = health.Get(request.service());
      if (told != state.status) {
        HealthCheckResponse response;
        response.set_status(state.status);
        written.Reset();
        stream.Write(Serialize(response, health.pool_), written);
        const bool sent = co_await written;
        if (!sent) break;  // the client is gone
        told = state.status;
      }
      if (state.ended) end = absl::UnavailableError("the server is draining");
      if (!end.ok()) break;
      changed.Reset();
      watcher.Wait(state.version, changed);
      co_await changed;
    }
  }
  if (end.ok() && stream.interrupted()) end = stream.interruption();
  stream.Finish(wire::ToCallStatus(end), finished);
  co_await finished;
  stream.End();
}

}  // namespace quantd::services
