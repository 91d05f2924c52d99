// A completion queue and the threads that poll it. What completes on it is an Event, and the call
// that waits for the event resumes on the polling thread.
#ifndef QUANTD_SERVER_RPC_QUEUE_H_
#define QUANTD_SERVER_RPC_QUEUE_H_

#include <grpcpp/completion_queue.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace quantd::rpc {

// A message that may wait a moment for the next one of its stream, to share a packet with it.
class HeldWrite {
 public:
  virtual ~HeldWrite() = default;
  // Writes it, and what gRPC keeps back of the stream with it. Called once a Hold, on any thread.
  virtual void Write() = 0;
};

class Queue {
 public:
  explicit Queue(std::unique_ptr<grpc::ServerCompletionQueue> queue);
  // Shuts down if that has not happened.
  ~Queue();

  // Starts the polling threads. Call once, after the server has started.
  void Start(int pollers);

  // Stops the threads. REQUIRES: the server is shut down and no call lives, because an operation on
  // a queue that is shut down aborts the process.
  void Shutdown();

  // Has `write` written when this thread has nothing left to do, or after kMostHold, unless it is
  // taken back before; at once if this is no polling thread. It must live until then.
  void Hold(HeldWrite& write);
  // Whether it was still held. If not, it has been written or is being written now.
  bool Take(HeldWrite& write);

  grpc::ServerCompletionQueue* get() const { return queue_.get(); }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::microseconds kMostHold{500};

  void Poll();
  bool NextEvent(void** tag, bool* ok);
  void WriteHeld();

  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::vector<std::thread> pollers_;
  bool shut_down_ = false;

  std::mutex mutex_;
  std::vector<HeldWrite*> held_;
  Clock::time_point held_since_;  // of the first
};

}  // namespace quantd::rpc

#endif  // QUANTD_SERVER_RPC_QUEUE_H_
