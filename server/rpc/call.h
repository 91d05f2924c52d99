// One coroutine a call: the type that every call function returns.
//
//   Call ServeUnary(Calls& calls, ...) { ...; const bool over = co_await done; }
//
// A call starts at once, owns itself, and frees its frame when it ends. Nobody holds or awaits it;
// `Calls` counts how many live. Rules: see README.md.
#ifndef QUANTD_SERVER_RPC_CALL_H_
#define QUANTD_SERVER_RPC_CALL_H_

#include <condition_variable>
#include <coroutine>
#include <cstdint>
#include <cstdlib>
#include <mutex>

namespace quantd::rpc {

// Counts frames, those that only wait for a call to arrive among them. Safe from any thread.
class Calls {
 public:
  void Enter() {
    const std::lock_guard lock(mutex_);
    ++live_;
  }
  // Notifies under the lock: whoever waits may free this object as soon as it sees 0.
  void Leave() {
    const std::lock_guard lock(mutex_);
    if (--live_ == 0) none_.notify_all();
  }
  int64_t live() const {
    const std::lock_guard lock(mutex_);
    return live_;
  }
  // Waits until no frame lives.
  void WaitForNone() {
    std::unique_lock lock(mutex_);
    none_.wait(lock, [this] { return live_ == 0; });
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable none_;
  int64_t live_ = 0;
};

struct Call {
  class promise_type {
   public:
    // The first parameter of a call function names who counts it.
    template <typename... Parameters>
    explicit promise_type(Calls& calls, Parameters&&...) : calls_(calls) {
      calls_.Enter();
    }
    ~promise_type() { calls_.Leave(); }

    Call get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    // Nothing in the server throws on purpose; out of memory is the end of the process.
    void unhandled_exception() { std::abort(); }

   private:
    Calls& calls_;
  };
};

}  // namespace quantd::rpc

#endif  // QUANTD_SERVER_RPC_CALL_H_
