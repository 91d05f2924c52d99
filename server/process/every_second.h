// Runs tasks once a second, one after the other, on a thread of its own: returning memory, checking
// files, probing the port. A task may block in the kernel.
#ifndef QUANTD_SERVER_PROCESS_EVERY_SECOND_H_
#define QUANTD_SERVER_PROCESS_EVERY_SECOND_H_

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace quantd::process {

class EverySecond {
 public:
  // Waits for the task that is running.
  ~EverySecond() { Stop(); }

  // Call before Start. Tasks run in this order.
  void Do(std::function<void()> task) { tasks_.push_back(std::move(task)); }
  void Start();
  void Stop();
  // Waits until `end` at most. False: a task has not ended, for example because it waits for a
  // disk. The thread continues, so this object and everything that the task uses must not be
  // destroyed.
  bool Stop(std::chrono::steady_clock::time_point end);
  // Makes all tasks run now. Safe from any thread.
  void Wake();

 private:
  void Run();

  std::vector<std::function<void()>> tasks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool woken_ = false;  // guarded by mutex_, like the next
  bool stopped_ = false;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace quantd::process

#endif  // QUANTD_SERVER_PROCESS_EVERY_SECOND_H_
