// The thread that waits for the disk. What requests need comes before what clients store and list.
#ifndef QUANTD_SERVER_STORED_PARAMETERS_WORKER_H_
#define QUANTD_SERVER_STORED_PARAMETERS_WORKER_H_

#include <cstddef>
#include <functional>
#include <thread>
#include <utility>

#include "server/mailbox/mailbox.h"

namespace quantd::stored_parameters {

// Safe from any thread.
class Worker {
 public:
  enum Priority { kFirst, kLast };

  // At most so many jobs of each priority wait.
  explicit Worker(size_t most)
      : jobs_(most), thread_([this] {
          while (auto job = jobs_.Take()) (*job)();
        }) {}
  // Finishes the job that it is at; those that wait are dropped.
  ~Worker() {
    jobs_.Close();
    thread_.join();
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // `job` runs on the thread, soon; those of one priority in their order. False: too many wait.
  bool Submit(Priority priority, std::function<void()> job) {
    return jobs_.Push(std::move(job), priority);
  }

 private:
  Mailbox<std::function<void()>, 2> jobs_;
  std::thread thread_;  // the last: it uses the other
};

}  // namespace quantd::stored_parameters

#endif  // QUANTD_SERVER_STORED_PARAMETERS_WORKER_H_
