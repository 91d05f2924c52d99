// The thread that waits for the disk. Jobs for requests come before storing and listing. In each
// priority peers take turns (loop/fair_queue.h), and the jobs of one peer are first come, first
// served.
//
//   Worker::Waiting waiting;
//   if (!worker.Submit(waiting, Worker::kFirst, peer, [] { ...; })) ...  // too many wait
//   worker.Cancel(waiting);                                 // the job is no longer needed
#ifndef QUANTD_SERVER_STORED_PARAMETERS_WORKER_H_
#define QUANTD_SERVER_STORED_PARAMETERS_WORKER_H_

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

#include "server/loop/fair_queue.h"
#include "server/loop/peer_share.h"

namespace quantd::stored_parameters {

// Thread-safe.
class Worker {
 public:
  enum Priority : uint8_t { kFirst, kLast };

  // A job in the queue. Must not move until the job has begun or was cancelled.
  class Waiting : public loop::FairQueue::Entry {
   private:
    friend class Worker;
    Priority priority_ = kFirst;
    uint64_t peer_ = 0;
    std::function<void()> job_;
  };

  // At most `most` jobs of each priority wait; one peer never has the last quarter.
  explicit Worker(size_t most);
  // REQUIRES: End was not called, or has returned true.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Runs `job` on the thread when it is its peer's turn. False: too many jobs wait.
  bool Submit(Waiting& waiting, Priority priority, uint64_t peer, std::function<void()> job);
  // Removes a job from the queue and frees all that it holds. Returns false and does nothing if it
  // has begun or never waited.
  bool Cancel(Waiting& waiting);

  // Drops waiting jobs, and waits until `end` for the running one. False: the disk has not
  // answered. The thread continues, so this object and everything that its job uses must not be
  // destroyed.
  bool End(std::chrono::steady_clock::time_point end);

 private:
  struct Lane {
    explicit Lane(size_t most) : shares(most) {}
    loop::FairQueue queue;
    loop::PeerShares shares;
  };

  void Run();
  // Both require that mutex_ is held.
  std::function<void()> TakeOut(Waiting& waiting, bool served);
  Waiting* First();

  const size_t most_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::array<Lane, 2> lanes_;
  bool ends_ = false;
  bool ended_ = false;
  std::thread thread_;  // last, because it uses the others
};

}  // namespace quantd::stored_parameters

#endif  // QUANTD_SERVER_STORED_PARAMETERS_WORKER_H_
