// See queue.h.
#include "server/rpc/queue.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "server/rpc/event.h"

namespace quantd::rpc {

namespace {

thread_local const Queue* polled_here = nullptr;

}  // namespace

Queue::Queue(std::unique_ptr<grpc::ServerCompletionQueue> queue) : queue_(std::move(queue)) {}

Queue::~Queue() { Shutdown(); }

void Queue::Start(int pollers) {
  for (int i = 0; i < pollers; ++i) {
    pollers_.emplace_back([this] { Poll(); });
    pthread_setname_np(pollers_.back().native_handle(), "quantd-poller");
  }
}

void Queue::Poll() {
  polled_here = this;
  void* tag = nullptr;
  bool ok = false;
  while (NextEvent(&tag, &ok)) Event::FromTag(tag)->Complete(ok);
}

bool Queue::NextEvent(void** tag, bool* ok) {
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (held_.empty()) break;
    }
    const bool overdue = Clock::now() - held_since_ > kMostHold;
    if (overdue) WriteHeld();
    switch (queue_->AsyncNext(tag, ok, gpr_inf_past(GPR_CLOCK_MONOTONIC))) {
      case grpc::CompletionQueue::GOT_EVENT:
        return true;
      case grpc::CompletionQueue::SHUTDOWN:
        return false;
      case grpc::CompletionQueue::TIMEOUT:
        WriteHeld();
    }
  }
  return queue_->Next(tag, ok);
}

void Queue::Hold(HeldWrite& write) {
  if (polled_here != this) return write.Write();
  const std::lock_guard lock(mutex_);
  if (held_.empty()) held_since_ = Clock::now();
  held_.push_back(&write);
}

bool Queue::Take(HeldWrite& write) {
  const std::lock_guard lock(mutex_);
  return std::erase(held_, &write) > 0;
}

void Queue::WriteHeld() {
  std::vector<HeldWrite*> held;
  {
    const std::lock_guard lock(mutex_);
    held.swap(held_);
  }
  for (HeldWrite* write : held) write->Write();
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
