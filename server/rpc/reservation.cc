#include "server/rpc/reservation.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/wire/call_status.h"

namespace quantd::rpc {

using wire::WithReason;

absl::Status NoMemory() {
  return WithReason(absl::ResourceExhaustedError("the system has no memory left for the request"),
                    "OUT_OF_MEMORY");
}

namespace {

// Work that takes this many times as long as the longest short work was estimated wrongly.
constexpr int kNotShort = 4;

}  // namespace

Reservation::~Reservation() {
  stream_.WaitsFor(nullptr);
  stream_.loop().timers().Clear(*this);
}

// Only a call that waits needs a timer.
void Reservation::StartWaiting() {
  queued_ = true;
  stream_.WaitsFor(this);
  if (!set()) {
    stream_.loop().timers().Set(*this, loop::Clock::now() + backend_.queue_timeout);
  }
  if (stream_.interrupted()) Cancel();  // interrupted before this function was called
}

void Reservation::Cancel() {
  if (!backend_.admission.Cancel(waits_for_memory_)) backend_.cores.Cancel(waits_for_core_);
}

void Reservation::Fire() { Cancel(); }

absl::Status InterruptedStatus(const Backend& backend, const transport::ServerCall& stream) {
  if (stream.interrupted()) return stream.interruption();
  return WithReason(
      absl::UnavailableError(absl::StrCat(
          "the server is busy: the request has waited for ",
          std::chrono::duration_cast<std::chrono::milliseconds>(backend.queue_timeout).count(),
          " ms (--queue_timeout); try again later")),
      "QUEUE_TIMEOUT");
}

std::chrono::nanoseconds LateEstimate(const Backend& backend, const wire::Rest& rest,
                                      uint64_t message_bytes) {
  constexpr uint64_t kNanosecondsAByte = 10;
  const std::chrono::nanoseconds estimate(
      std::max(wire::DecodeNanoseconds(rest), kNanosecondsAByte * message_bytes));
  if (backend.regions == nullptr) return estimate;
  return std::max(estimate, backend.policy.short_work + std::chrono::nanoseconds(1));
}

absl::Status Reservation::AskForMemory(uint64_t bytes, loop::Event& admitted) {
  admission::AdmissionRequest request;
  request.bytes = bytes;
  request.peer = stream_.peer();
  request.loop = &stream_.loop();
  request.granted = &admitted;
  const absl::StatusOr<bool> granted =
      backend_.admission.Request(request, waits_for_memory_, permit_);
  if (!granted.ok()) {
    return WithReason(granted.status(),
                      absl::IsUnavailable(granted.status()) ? "QUEUE_FULL" : "OVER_MEMORY_BUDGET");
  }
  if (*granted) {
    admitted.Complete(true);
  } else {
    StartWaiting();
  }
  return absl::OkStatus();
}

absl::Status Reservation::AskForCore(std::chrono::nanoseconds estimate, loop::Event& granted) {
  estimate_ = static_cast<uint64_t>(estimate.count());
  if (estimate <= backend_.policy.short_work) {
    granted.Complete(true);
    return absl::OkStatus();
  }
  cores_ = 1;  // when it runs
  if (backend_.cores.Take(waits_for_core_, stream_.peer(), estimate_, stream_.loop(), granted)) {
    granted.Complete(true);
  } else {
    StartWaiting();
  }
  return absl::OkStatus();
}

void Reservation::Began(bool granted) {
  if (!granted) cores_ = 0;
  // If no thread can take over the lead, the loop waits.
  if (cores_ > 0 && stream_.loop().leading()) backend_.thread_pool->HandOver();
}

void Reservation::LetOthers() {
  if (loop::Loop::Here() == nullptr) {
    return backend_.cores.LetOthers(turn_, stream_.peer(), estimate_);
  }
  // A thread that leads does not stand: the work seemed short, or no thread could take over.
  const loop::Clock::duration took = loop::Clock::now() - turn_.since.load();
  if (took < kNotShort * backend_.policy.short_work || !backend_.thread_pool->HandOver()) return;
  if (std::exchange(cores_, 1) != 0) return;
  const auto cost = static_cast<uint64_t>(std::chrono::nanoseconds(took).count());
  backend_.cores.Join(turn_, stream_.peer(), std::max(estimate_, cost));
}

const Executor& Reservation::TakeCores(int64_t wanted) {
  if (cores_ == 0) return backend_.executors.of(1);
  const auto most = static_cast<int>(std::min<int64_t>(wanted, backend_.policy.cores));
  if (most > 1) cores_ += backend_.cores.TakeIdle(most - 1);
  const Executor& executor = backend_.executors.of(cores_);
  if (cores_ > executor.threads()) {
    backend_.cores.Give(cores_ - executor.threads(), /*ends=*/false);
    cores_ = executor.threads();
  }
  return executor;
}

void Reservation::KeepForResponse(uint64_t bytes) {
  permit_.Shrink(bytes);
  permit_.Computed();
}

void Reservation::GiveSpareCores() {
  if (cores_ > 1) backend_.cores.Give(std::exchange(cores_, 1) - 1, /*ends=*/false);
}

void Reservation::GiveCores() {
  if (cores_ > 0) backend_.cores.Give(std::exchange(cores_, 0));
}

}  // namespace quantd::rpc
