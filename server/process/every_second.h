// The work that the process does once a second, one task after the other on a thread of its own:
// giving back memory, looking at files, probing its port. A task may wait for the kernel.
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
  // Waits for the task that is being done.
  ~EverySecond() { Stop(); }

  // Before Start; tasks are done in this order.
  void Do(std::function<void()> task) { tasks_.push_back(std::move(task)); }
  void Start();
  void Stop();
  // Waits until `end` at most. False: a task is not over, as one that waits for a disk: the thread
  // goes on, and what it uses, this included, must stay.
  bool Stop(std::chrono::steady_clock::time_point end);
  // Has all tasks done at once. Safe from any thread.
  void Wake();

 private:
  void Run();

  std::vector<std::function<void()>> tasks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool woken_ = false;  // guarded by mutex_, as the next
  bool stopped_ = false;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace quantd::process

#endif  // QUANTD_SERVER_PROCESS_EVERY_SECOND_H_
