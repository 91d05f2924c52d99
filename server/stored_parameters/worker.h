// The thread that waits for the disk. What requests need comes before what clients store and list;
// of each, peers take turns (loop/fair_queue.h), and a peer's own are first come, first served.
//
//   Worker::Waiting waiting;
//   if (!worker.Submit(waiting, Worker::kFirst, peer, [] { ...; })) ...  // too many wait
//   worker.Cancel(waiting);                                 // nobody needs it any more
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

// Safe from any thread.
class Worker {
 public:
  enum Priority : uint8_t { kFirst, kLast };

  // A job in the queue. Stays where it is until the job has begun, or is taken back.
  class Waiting : public loop::FairQueue::Entry {
   private:
    friend class Worker;
    Priority priority_ = kFirst;
    uint64_t peer_ = 0;
    std::function<void()> job_;
  };

  // At most so many jobs of each priority wait, the last quarter of them never one peer's.
  explicit Worker(size_t most);
  // REQUIRES: End, if it was called, has returned true.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // `job` runs on the thread, in its peer's turn. False: too many wait.
  bool Submit(Waiting& waiting, Priority priority, uint64_t peer, std::function<void()> job);
  // Takes a job out of the queue and lets go of all that it holds. False, and nothing happens, when
  // it has begun, or never waited.
  bool Cancel(Waiting& waiting);

  // Drops the jobs that wait, and waits until `end` for the one that is at work. False: the disk
  // has not answered: the thread goes on, and all that its job uses, this included, must stay.
  bool End(std::chrono::steady_clock::time_point end);

 private:
  struct Lane {
    explicit Lane(size_t most) : shares(most) {}
    loop::FairQueue queue;
    loop::PeerShares shares;
  };

  void Run();
  // REQUIRES for both: mutex_ held.
  std::function<void()> TakeOut(Waiting& waiting, bool served);
  Waiting* First();

  const size_t most_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::array<Lane, 2> lanes_;
  bool ends_ = false;
  bool ended_ = false;
  std::thread thread_;  // the last: it uses the others
};

}  // namespace quantd::stored_parameters

#endif  // QUANTD_SERVER_STORED_PARAMETERS_WORKER_H_
