// The type that every call function returns: one coroutine per call.
//
//   Call ServeUnary(Calls& calls, ...) { ...; const bool sent = co_await finished; stream.End(); }
//
// A call starts at once, owns itself, and frees its frame when it ends. Nothing holds or awaits it;
// `Calls` counts the live ones. For the rules see README.md.
#ifndef QUANTD_SERVER_RPC_CALL_H_
#define QUANTD_SERVER_RPC_CALL_H_

#include <atomic>
#include <coroutine>
#include <cstdint>
#include <cstdlib>

namespace quantd::rpc {

// Counts frames. Thread-safe.
class Calls {
 public:
  void Enter() { live_.fetch_add(1, std::memory_order_relaxed); }
  void Leave() { live_.fetch_sub(1, std::memory_order_release); }
  int64_t live() const { return live_.load(std::memory_order_acquire); }

 private:
  std::atomic<int64_t> live_{0};
};

struct Call {
  class promise_type {
   public:
    // The first parameter of a call function is the counter.
    template <typename... Parameters>
    explicit promise_type(Calls& calls, Parameters&&...) : calls_(calls) {
      calls_.Enter();
    }
    ~promise_type() { calls_.Leave(); }

    Call get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    // Steps of RequestRun handle running out of memory themselves; everything else allocates only a
    // few bytes.
    void unhandled_exception() { std::abort(); }

   private:
    Calls& calls_;
  };
};

}  // namespace quantd::rpc

#endif  // QUANTD_SERVER_RPC_CALL_H_
