// See queue.h.
#include "server/rpc/queue.h"

#include <pthread.h>

#include <utility>

#include "server/rpc/event.h"

namespace quantd::rpc {

Queue::Queue(std::unique_ptr<grpc::ServerCompletionQueue> queue) : queue_(std::move(queue)) {}

Queue::~Queue() { Shutdown(); }

void Queue::Start(int pollers) {
  for (int i = 0; i < pollers; ++i) {
    pollers_.emplace_back([this] { Poll(); });
    pthread_setname_np(pollers_.back().native_handle(), "quantd-poller");
  }
}

void Queue::Poll() {
  void* tag = nullptr;
  bool ok = false;
  while (queue_->Next(&tag, &ok)) Event::FromTag(tag)->Complete(ok);
}

void Queue::Shutdown() {
  if (std::exchange(shut_down_, true)) return;
  queue_->Shutdown();
  if (pollers_.empty()) {
    Poll();  // a queue must be empty when it is destroyed
  }
  for (std::thread& poller : pollers_) poller.join();
}

}  // namespace quantd::rpc
