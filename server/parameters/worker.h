// The thread that waits for the disk. What requests need comes before what clients store and list.
#ifndef QUANTD_SERVER_PARAMETERS_WORKER_H_
#define QUANTD_SERVER_PARAMETERS_WORKER_H_

#include <array>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace quantd::parameters {

// Safe from any thread.
class Worker {
 public:
  enum Priority { kFirst, kLast };

  // At most so many jobs of each priority wait.
  explicit Worker(size_t most) : most_(most), thread_([this] { Run(); }) {}
  // Finishes the job that it is at; those that wait are dropped.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // `job` runs on the thread, soon; those of one priority in their order. False: too many wait.
  bool Submit(Priority priority, std::function<void()> job);

 private:
  void Run();

  const size_t most_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::array<std::deque<std::function<void()>>, 2> jobs_;
  bool ends_ = false;
  std::thread thread_;  // the last: it uses the others
};

}  // namespace quantd::parameters

#endif  // QUANTD_SERVER_PARAMETERS_WORKER_H_
