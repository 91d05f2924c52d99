// Runs a job on the thread of stored parameters (stored_parameters/worker.h) while a call waits.
//
//   DiskTask disk_task(backend, stream);
//   status = disk_task.Start(Worker::kFirst, [found] { *found = ...; }, done);
//   const bool is_done = co_await done;
//   if (!is_done) status = disk_task.NotDone();
//
// An interrupted call stops waiting. A job that has not begun then leaves the queue and frees all
// that it holds. A job that has begun owns everything that it uses, and its result is dropped. A
// DiskTask lives in the frame of its call and does not move.
#ifndef QUANTD_SERVER_RPC_DISK_TASK_H_
#define QUANTD_SERVER_RPC_DISK_TASK_H_

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "server/rpc/backend.h"
#include "server/transport/server_call.h"

namespace quantd::rpc {

// All functions must be called on the thread that leads the stream's loop.
class DiskTask final : private transport::Cancellable, private loop::Timer {
 public:
  DiskTask(Backend& backend, transport::ServerCall& stream) : backend_(backend), stream_(stream) {}
  ~DiskTask();
  DiskTask(const DiskTask&) = delete;
  DiskTask& operator=(const DiskTask&) = delete;

  // Queues `job`. If it returns OK, `done` completes, with false if the call should not wait any
  // longer (NotDone). UNAVAILABLE: too many jobs wait. REQUIRES: the backend has a worker.
  absl::Status Start(stored_parameters::Worker::Priority priority, std::function<void()> job,
                     loop::Event& done);

  // The error for the client: why a started job is not done.
  absl::Status NotDone() const;

 private:
  std::chrono::nanoseconds most() const;
  void Cancel() override;  // the stream was interrupted
  void Fire() override;    // it has waited for too long

  Backend& backend_;
  transport::ServerCall& stream_;
  // Whether the job has ended or was cancelled. The first of the two completes the event.
  std::shared_ptr<std::atomic<bool>> over_;
  stored_parameters::Worker::Waiting waiting_;
  loop::Event* done_ = nullptr;
};

}  // namespace quantd::rpc

#endif  // QUANTD_SERVER_RPC_DISK_TASK_H_
