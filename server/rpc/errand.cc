// See errand.h.
#include "server/rpc/errand.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/errors/reason.h"

namespace quantd::rpc {

using errors::WithReason;

Errand::~Errand() {
  stream_.WaitsFor(nullptr);
  stream_.loop().timers().Clear(*this);
}

void Errand::Wait(std::chrono::nanoseconds most) {
  stream_.WaitsFor(this);
  if (!set()) stream_.loop().timers().Set(*this, loop::Clock::now() + most);
}

absl::Status Errand::Admit(uint64_t bytes, loop::Event& admitted) {
  admission::Admission::Wish wish;
  wish.bytes = bytes;
  wish.peer = stream_.peer();
  wish.loop = &stream_.loop();
  wish.granted = &admitted;
  const absl::StatusOr<bool> granted = backend_.admission.Request(wish, waits_for_memory_, permit_);
  if (!granted.ok()) {
    return WithReason(granted.status(),
                      absl::IsUnavailable(granted.status()) ? "QUEUE_FULL" : "OVER_MEMORY_BUDGET");
  }
  if (*granted) {
    admitted.Complete(true);
  } else {
    Wait(backend_.queue_timeout);
  }
  return absl::OkStatus();
}

absl::Status Errand::Start(parameters::Worker::Priority priority, std::function<void()> job,
                           loop::Event& done) {
  over_ = std::make_shared<std::atomic<bool>>(false);
  done_ = &done;
  const bool taken = backend_.parameters_worker->Submit(
      priority, [job = std::move(job), over = over_, loop = &stream_.loop(), &done] {
        job();
        // The call waits for the event, unless it is over.
        if (!over->exchange(true)) loop->Complete(done, true);
      });
  if (!taken) {
    over_ = nullptr;
    return WithReason(
        absl::UnavailableError("too many requests wait for stored parameters; try again later"),
        "QUEUE_FULL");
  }
  // Even where nobody may wait for others, a disk takes its time.
  Wait(std::max<std::chrono::nanoseconds>(backend_.queue_timeout, std::chrono::seconds(1)));
  return absl::OkStatus();
}

absl::Status Errand::WhyNot() const {
  if (stream_.interrupted()) return stream_.interruption();
  return WithReason(
      absl::UnavailableError(absl::StrCat(
          "the server is busy: the request has waited for ",
          std::chrono::duration_cast<std::chrono::milliseconds>(backend_.queue_timeout).count(),
          " ms (--queue_timeout); try again later")),
      "QUEUE_TIMEOUT");
}

void Errand::Cancel() {
  if (backend_.admission.Cancel(waits_for_memory_)) return;
  if (over_ != nullptr && !over_->exchange(true)) stream_.loop().Complete(*done_, false);
}

void Errand::Fire() { Cancel(); }

}  // namespace quantd::rpc
