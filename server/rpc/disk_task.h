// What is done on the thread of stored parameters (stored_parameters/worker.h) while a call waits.
//
//   DiskTask disk_task(backend, stream);
//   status = disk_task.Start(Worker::kFirst, [found] { *found = ...; }, done);
//   const bool is_done = co_await done;
//   if (!is_done) status = disk_task.NotDone();
//
// A call that is interrupted does not wait on. A job that has not begun leaves the queue, with all
// that it holds; one that has owns all that it touches, and what it comes to is nobody's. Lives in
// the frame of its call and stays where it is.
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

// All of it on the thread that leads the stream's loop.
class DiskTask final : private transport::Cancellable, private loop::Timer {
 public:
  DiskTask(Backend& backend, transport::ServerCall& stream) : backend_(backend), stream_(stream) {}
  ~DiskTask();
  DiskTask(const DiskTask&) = delete;
  DiskTask& operator=(const DiskTask&) = delete;

  // Has `job` done. When it is OK, `done` completes: with false when the call should not wait on
  // (NotDone). UNAVAILABLE: too many wait. REQUIRES: the backend has a worker.
  absl::Status Start(stored_parameters::Worker::Priority priority, std::function<void()> job,
                     loop::Event& done);

  // Why a job that was started is not done, for the client.
  absl::Status NotDone() const;

 private:
  std::chrono::nanoseconds most() const;
  void Cancel() override;  // the stream was interrupted
  void Fire() override;    // it has waited for too long

  Backend& backend_;
  transport::ServerCall& stream_;
  // Whether it is over, by its end or by Cancel: who says so first completes the event.
  std::shared_ptr<std::atomic<bool>> over_;
  stored_parameters::Worker::Waiting waiting_;
  loop::Event* done_ = nullptr;
};

}  // namespace quantd::rpc

#endif  // QUANTD_SERVER_RPC_DISK_TASK_H_
