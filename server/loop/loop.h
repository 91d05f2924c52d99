// An event loop for sockets, timers and what other threads post. One thread at a time leads it, and
// only that thread uses what belongs to the loop. The lead can be handed to another thread
// (thread_pool.h), so that a thread can compute for a while.
//
// An iteration runs what is ready (calls continue), then checks whether more has come. If not, it
// writes all responses, so that they share system calls, and then waits.
#ifndef QUANTD_SERVER_LOOP_LOOP_H_
#define QUANTD_SERVER_LOOP_LOOP_H_

#include <sys/epoll.h>

#include <atomic>
#include <chrono>
#include <coroutine>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/loop/busy_poll.h"
#include "server/loop/event.h"
#include "server/loop/posted.h"
#include "server/loop/timers.h"

namespace quantd::loop {

// The owner of a socket.
class Watcher {
 public:
  // `events`: EPOLLIN and so on. The watcher may unwatch and destroy itself, but no other
  // watcher.
  virtual void OnReady(uint32_t events) = 0;

 protected:
  ~Watcher() = default;
};

class Loop {
 public:
  // `busy_poll`: see busy_poll.h. Returns UNAVAILABLE if the system has no descriptors left.
  static absl::StatusOr<std::unique_ptr<Loop>> Create(const BusyPoll::Limits& busy_poll = {});
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // The following are safe from any thread.

  // Runs `posted` on the leading thread, soon and not inside of another function. REQUIRES: not
  // posted already.
  void Post(Posted& posted);
  // Completes `event` in the same way.
  void Complete(Event& event, bool ok);
  // Whether this thread leads the loop.
  bool leading() const { return led_here == this; }
  // The loop that this thread leads, or nullptr.
  static Loop* Here() { return led_here; }
  // Ends Lead. Nothing that is posted later is run.
  void Stop();

  // The following are for the leading thread only.

  // Calls `watcher` for `events` (epoll's; level triggered) at `fd`, until Unwatch. Returns false
  // if the system is out of memory.
  bool Watch(int fd, uint32_t events, Watcher& watcher);
  void Rewatch(int fd, uint32_t events, Watcher& watcher);
  void Unwatch(int fd);

  // Runs `posted` at the end of the iteration, before the loop waits. REQUIRES: not posted already.
  void AtIterationEnd(Posted& posted) { at_end_.Push(posted); }

  // Runs `posted` before everything else that is ready. REQUIRES: not posted already.
  void PostNext(Posted& posted) { ready_.PushFirst(posted); }
  bool has_ready() const { return !ready_.empty(); }

  Timers& timers() { return timers_; }
  // When this iteration began.
  Clock::time_point now() const { return now_; }

  // Leads until the lead is handed over or the loop is stopped. REQUIRES: no thread leads it.
  void Lead();
  // Gives up the lead without stopping, for the thread that takes it over. Called by ThreadPool.
  static void Leave() { led_here = nullptr; }

 private:
  Loop(int epoll, int wakeup, const BusyPoll::Limits& busy_poll)
      : epoll_(epoll), wakeup_(wakeup), busy_poll_(busy_poll) {}
  void Iterate();
  bool RunReady();
  // Waits for at most `milliseconds` (-1: no limit) and calls the watchers. Returns whether any was
  // called.
  bool Poll(int milliseconds);
  // Polls for a moment, or until something is posted. Returns the number of events.
  int PollOn(absl::Span<epoll_event> events);
  int Timeout() const;

  static thread_local Loop* led_here;

  const int epoll_;
  const int wakeup_;  // an eventfd, written when the leader waits
  Inbox inbox_;
  std::atomic<bool> waits_{false};
  std::atomic<bool> stopped_{false};
  ReadyList ready_;
  ReadyList at_end_;
  BusyPoll busy_poll_;
  Timers timers_;
  Clock::time_point now_ = Clock::now();
};

// Moves a call to the thread that leads a loop; only that thread uses what belongs to a connection.
//
//   Lead lead(stream.loop());
//   ...                        // computes on any thread
//   co_await lead;             // from here on this thread leads the loop
//
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

#endif  // QUANTD_SERVER_LOOP_LOOP_H_
