#include "server/rpc/disk_task.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/errors/reason.h"

namespace quantd::rpc {

using errors::WithReason;

DiskTask::~DiskTask() {
  stream_.WaitsFor(nullptr);
  stream_.loop().timers().Clear(*this);
}

absl::Status DiskTask::Start(stored_parameters::Worker::Priority priority,
                             std::function<void()> job, loop::Event& done) {
  over_ = std::make_shared<std::atomic<bool>>(false);
  done_ = &done;
  const bool taken = backend_.parameters_worker->Submit(
      waiting_, priority, stream_.peer(),
      [job = std::move(job), over = over_, loop = &stream_.loop(), &done] {
        job();
        // Completes the call's event, unless the call has stopped waiting.
        if (!over->exchange(true)) loop->Complete(done, true);
      });
  if (!taken) {
    over_ = nullptr;
    return WithReason(
        absl::UnavailableError("too many requests wait for stored parameters; try again later"),
        "QUEUE_FULL");
  }
  stream_.WaitsFor(this);
  if (!set()) stream_.loop().timers().Set(*this, loop::Clock::now() + most());
  if (stream_.interrupted()) Cancel();  // interrupted before this function was called
  return absl::OkStatus();
}

// Even if --queue_timeout is 0, a disk needs time.
std::chrono::nanoseconds DiskTask::most() const {
  return std::max<std::chrono::nanoseconds>(backend_.queue_timeout, std::chrono::seconds(1));
}

absl::Status DiskTask::NotDone() const {
  if (stream_.interrupted()) return stream_.interruption();
  return WithReason(absl::UnavailableError(absl::StrCat(
                        "the disk of --parameters_dir has not answered for ",
                        std::chrono::duration_cast<std::chrono::milliseconds>(most()).count(),
                        " ms (--queue_timeout, 1000 at least); try again later")),
                    "QUEUE_TIMEOUT");
}

void DiskTask::Cancel() {
  if (over_ == nullptr || over_->exchange(true)) return;
  backend_.parameters_worker->Cancel(waiting_);
  stream_.loop().Complete(*done_, false);
}

void DiskTask::Fire() { Cancel(); }

}  // namespace quantd::rpc
