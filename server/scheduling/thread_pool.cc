#include "server/scheduling/thread_pool.h"

#include <pthread.h>

#include "server/scheduling/compute_slots.h"

namespace quantd::scheduling {

ThreadPool::ThreadPool(const std::vector<loop::Loop*>& loops, int spare) : loops_(loops) {
  const size_t count = loops.size() + static_cast<size_t>(spare);
  for (size_t i = 0; i < count; ++i) {
    Thread& thread = *threads_.emplace_back(std::make_unique<Thread>());
    loop::Loop* const loop = i < loops.size() ? loops[i] : nullptr;
    if (loop == nullptr) {  // treated as parked: a loop handed over now becomes its first
      const std::lock_guard lock(mutex_);
      parked_.push_back(&thread);
    }
    thread.thread = std::thread([this, &thread, loop] { Main(thread, loop); });
    pthread_setname_np(thread.thread.native_handle(), "quantd-pool");
  }
}

ThreadPool::~ThreadPool() {
  std::vector<Thread*> parked;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    parked.swap(parked_);
  }
  for (Thread* thread : parked) Wake(*thread, nullptr);
  for (loop::Loop* loop : loops_) loop->Stop();
  for (const std::unique_ptr<Thread>& thread : threads_) thread->thread.join();
}

void ThreadPool::Wake(Thread& thread, loop::Loop* loop) {
  thread.loop = loop;
  thread.wakeups.fetch_add(1, std::memory_order_release);
  thread.wakeups.notify_one();
}

loop::Loop* ThreadPool::Park(Thread& self) {
  const uint32_t before = self.wakeups.load(std::memory_order_relaxed);
  {
    const std::lock_guard lock(mutex_);
    if (ending_) return nullptr;
    parked_.push_back(&self);
  }
  return Await(self, before);
}

loop::Loop* ThreadPool::Await(const Thread& self, uint32_t wakeups) {
  while (self.wakeups.load(std::memory_order_acquire) == wakeups) self.wakeups.wait(wakeups);
  return self.loop;
}

bool ThreadPool::HandOver() {
  loop::Loop* const loop = loop::Loop::Here();
  if (loop == nullptr) return false;
  Thread* next = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (parked_.empty()) return false;
    next = parked_.back();
    parked_.pop_back();
  }
  computing_.fetch_add(1, std::memory_order_relaxed);
  loop::Loop::Leave();
  Wake(*next, loop);
  return true;
}

void ThreadPool::Main(Thread& self, loop::Loop* loop) {
  ComputeSlots::ServeHere();
  if (loop == nullptr) loop = Await(self, 0);
  while (loop != nullptr) {
    loop->Lead();
    {
      const std::lock_guard lock(mutex_);
      if (ending_) return;
    }
    // The loop was handed over, and the thread's computation is done.
    ComputeSlots::RunWaiting();
    computing_.fetch_sub(1, std::memory_order_relaxed);
    loop = Park(self);
  }
}

}  // namespace quantd::scheduling
