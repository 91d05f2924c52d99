// A completion queue and the threads that poll it. What completes on it is an Event, and the call
// that waits for the event resumes on the polling thread.
#ifndef QUANTD_SERVER_RPC_QUEUE_H_
#define QUANTD_SERVER_RPC_QUEUE_H_

#include <grpcpp/completion_queue.h>

#include <memory>
#include <thread>
#include <vector>

namespace quantd::rpc {

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

  grpc::ServerCompletionQueue* get() const { return queue_.get(); }

 private:
  void Poll();

  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::vector<std::thread> pollers_;
  bool shut_down_ = false;
};

}  // namespace quantd::rpc

#endif  // QUANTD_SERVER_RPC_QUEUE_H_
