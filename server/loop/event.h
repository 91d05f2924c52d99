// The only thing that a call awaits: a message, a permit, a core, or the end of the call.
//
//   Event written;
//   stream.Write(std::move(response), written);  // starts now
//   ...                                        // meanwhile the call does something else
//   const bool sent = co_await written;        // resumes on the thread that completed it
//
// An event may complete before it is awaited, or on another thread while it is being awaited. Its
// whole state is one atomic word: pending, the waiting call, done, or done but not ok. Only one
// call may await it, once.
#ifndef QUANTD_SERVER_LOOP_EVENT_H_
#define QUANTD_SERVER_LOOP_EVENT_H_

#include <atomic>
#include <coroutine>

#include "server/loop/posted.h"

namespace quantd::loop {

class Event final : public Posted {
 public:
  Event() = default;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  // Completes the event and resumes the waiting call on this thread, inside of this function; where
  // that must not happen, use Loop::Complete. The event may be gone when Complete returns.
  // REQUIRES: not completed since the last Reset.
  void Complete(bool ok) {
    void* const waiting = state_.exchange(Done(ok), std::memory_order_acq_rel);
    if (waiting != nullptr) std::coroutine_handle<>::from_address(waiting).resume();
  }

  // Whether it is complete. Safe from any thread while the event lives.
  bool ready() const {
    void* const state = state_.load(std::memory_order_acquire);
    return state == Done(true) || state == Done(false);
  }

  // Makes the event pending again. REQUIRES: nothing will complete it, and no call awaits it.
  void Reset() { state_.store(nullptr, std::memory_order_relaxed); }

  bool await_ready() const noexcept { return ready(); }
  // Not inlined: GCC and Clang otherwise keep parts of the frame in registers across the suspension
  // (llvm#56301), while another thread resumes the call.
  [[gnu::noinline]] bool await_suspend(std::coroutine_handle<> call) noexcept {
    void* pending = nullptr;
    return state_.compare_exchange_strong(pending, call.address(), std::memory_order_acq_rel,
                                          std::memory_order_acquire);
  }
  bool await_resume() const noexcept {
    return state_.load(std::memory_order_acquire) == Done(true);
  }

 private:
  friend class Loop;
  void Run() override { Complete(ok_); }

  // Two values that are neither null nor the address of a call's frame.
  static void* Done(bool ok) {
    static char words[2];
    return &words[ok ? 1 : 0];
  }

  std::atomic<void*> state_{nullptr};
  bool ok_ = false;  // the value that a loop will complete it with
};

}  // namespace quantd::loop

#endif  // QUANTD_SERVER_LOOP_EVENT_H_
