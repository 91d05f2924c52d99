// See health.h.
#include "server/lifecycle/health.h"

#include <grpcpp/support/async_stream.h>

#include <chrono>
#include <optional>
#include <utility>

#include "server/rpc/event.h"

namespace quantd::lifecycle {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

namespace {

std::set<std::string> WithServer(std::vector<std::string> services) {
  std::set<std::string> all(services.begin(), services.end());
  all.insert("");
  return all;
}

}  // namespace

// One Watch stream's place among those that are told of a change. An alarm is what a call can wait
// for and any thread can end: by cancelling it.
class Health::Watcher {
 public:
  explicit Watcher(Health& health) : health_(health) {
    const std::lock_guard lock(health_.mutex_);
    health_.alarms_.insert(&alarm_);
  }
  ~Watcher() {
    const std::lock_guard lock(health_.mutex_);
    health_.alarms_.erase(&alarm_);
  }

  // Completes `changed` when the state is another than `version`, and after a few seconds, so that
  // a stream whose client went away does not stay.
  void Wait(uint64_t version, rpc::Queue& queue, rpc::Event& changed) {
    const std::lock_guard lock(health_.mutex_);
    const auto now = std::chrono::system_clock::now();
    const bool is_news = health_.version_ != version;
    alarm_.Set(queue.get(), is_news ? now : now + std::chrono::seconds(5), changed.tag());
  }

 private:
  Health& health_;
  grpc::Alarm alarm_;
};

Health::Health(std::vector<std::string> services) : services_(WithServer(std::move(services))) {}

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
  for (grpc::Alarm* alarm : alarms_) alarm->Cancel();
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

grpc::Status Health::Check(grpc::ServerContext* /*context*/, const HealthCheckRequest* request,
                           HealthCheckResponse* response) {
  const State state = Get(request->service());
  if (state.status == HealthCheckResponse::SERVICE_UNKNOWN) {
    return {grpc::StatusCode::NOT_FOUND, "this server has no such service"};
  }
  response->set_status(state.status);
  return grpc::Status::OK;
}

rpc::Call Health::ServeWatch(rpc::Calls& calls, Health& health, rpc::Queue& queue) {
  grpc::ServerContext context;
  HealthCheckRequest request;
  grpc::ServerAsyncWriter<HealthCheckResponse> stream(&context);
  rpc::Event arrived, done, written, changed, finished;
  context.AsyncNotifyWhenDone(done.tag());
  health.RequestWatch(&context, &request, &stream, queue.get(), queue.get(), arrived.tag());
  const bool is_call = co_await arrived;
  if (!is_call) co_return;  // the server shuts down; `done` never completes
  ServeWatch(calls, health, queue);

  Watcher watcher(health);
  std::optional<Status> told;
  while (!done.ready()) {
    const State state = health.Get(request.service());
    if (told != state.status) {
      HealthCheckResponse response;
      response.set_status(state.status);
      written.Reset();
      stream.Write(response, written.tag());
      const bool sent = co_await written;
      if (!sent) break;  // the client is gone
      told = state.status;
    }
    if (state.ended) break;
    changed.Reset();
    watcher.Wait(state.version, queue, changed);
    co_await changed;
  }
  stream.Finish({grpc::StatusCode::UNAVAILABLE, "the server is draining"}, finished.tag());
  co_await finished;
  co_await done;
}

}  // namespace quantd::lifecycle
