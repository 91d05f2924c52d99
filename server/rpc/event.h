// The only completion tag of the server, and the only thing that a call awaits: a gRPC operation, a
// permit, a job on the pool, the end of the call.
//
//   Event written;
//   stream.Write(message, written.tag());   // starts now
//   ...                                     // meanwhile the call does something else
//   const bool sent = co_await written;     // resumes on the thread that completed it
//
// An event may complete before it is awaited, or on another thread while it is being awaited: its
// whole state is one atomic word (pending, the waiting call, done, done but not ok). One call
// awaits it, once.
#ifndef QUANTD_SERVER_RPC_EVENT_H_
#define QUANTD_SERVER_RPC_EVENT_H_

#include <atomic>
#include <coroutine>

#if defined(__SANITIZE_THREAD__)
#define QUANTD_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define QUANTD_TSAN 1
#endif
#endif
#ifdef QUANTD_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace quantd::rpc {

class Event {
 public:
  Event() = default;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  // What a completion queue gives back when the operation is over. Ask for it when the operation is
  // started.
  void* tag() {
    Started();
    return this;
  }
  static Event* FromTag(void* tag) { return static_cast<Event*>(tag); }

  // Says that it is over, and resumes the call that waits for it on this thread. The event may be
  // gone when Complete returns. REQUIRES: not completed since the last Reset.
  void Complete(bool ok) {
    Completing();
    void* const waiting = state_.exchange(Done(ok), std::memory_order_acq_rel);
    if (waiting != nullptr) std::coroutine_handle<>::from_address(waiting).resume();
  }

  // Whether it is over. Safe from any thread while the event lives.
  bool ready() const {
    void* const state = state_.load(std::memory_order_acquire);
    return state == Done(true) || state == Done(false);
  }

  // Makes it pending again. REQUIRES: nothing will complete it, nobody waits for it.
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
  // Two words that are neither null nor the address of a call's frame.
  static void* Done(bool ok) {
    static char words[2];
    return &words[ok ? 1 : 0];
  }
  // Whoever completes an event knows of it from whoever started the operation. In between lie
  // gRPC's locks, which ThreadSanitizer does not see, because Debian's gRPC is not instrumented.
  void Started() {
#ifdef QUANTD_TSAN
    __tsan_release(this);
#endif
  }
  void Completing() {
#ifdef QUANTD_TSAN
    __tsan_acquire(this);
#endif
  }

  std::atomic<void*> state_{nullptr};
};

}  // namespace quantd::rpc

#endif  // QUANTD_SERVER_RPC_EVENT_H_
