// Moves a call to the thread that leads a loop; only that thread uses what belongs to a connection.
//
//   Lead lead(stream.loop());
//   ...                        // computes on any thread
//   co_await lead;             // from here on this thread leads the loop
#ifndef QUANTD_SERVER_LOOP_LEAD_H_
#define QUANTD_SERVER_LOOP_LEAD_H_

#include <coroutine>

#include "server/loop/loop.h"

namespace quantd::loop {

// Belongs to one call, which may await it any number of times.
class Lead final : public Posted {
 public:
  explicit Lead(Loop& loop) : loop_(loop) {}
  Lead(const Lead&) = delete;
  Lead& operator=(const Lead&) = delete;

  bool await_ready() const noexcept { return loop_.leading(); }
  // Not inlined: see Event.
  [[gnu::noinline]] void await_suspend(std::coroutine_handle<> call) noexcept {
    call_ = call;
    loop_.Post(*this);
  }
  void await_resume() const noexcept {}

 private:
  void Run() override { call_.resume(); }

  Loop& loop_;
  std::coroutine_handle<> call_;
};

}  // namespace quantd::loop

#endif  // QUANTD_SERVER_LOOP_LEAD_H_
