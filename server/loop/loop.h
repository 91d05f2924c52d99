// An event loop: sockets, timers, and what other threads post. One thread at a time leads it, and
// only that one touches what belongs to the loop; the lead can be handed to another thread
// (thread_pool.h), so that a thread may compute for a while where it is.
//
// An iteration: run what is ready (calls go on), then look whether more has come, and when nothing
// has, write the responses of all that happened, so that they share system calls; then wait.
#ifndef QUANTD_SERVER_LOOP_LOOP_H_
#define QUANTD_SERVER_LOOP_LOOP_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "server/loop/event.h"
#include "server/loop/posted.h"
#include "server/loop/timers.h"

namespace quantd::loop {

// A socket's owner.
class Watcher {
 public:
  // `events`: EPOLLIN and so on. It may unwatch and destroy itself, but nothing else that is
  // watched.
  virtual void OnReady(uint32_t events) = 0;

 protected:
  ~Watcher() = default;
};

class Loop {
 public:
  // UNAVAILABLE when the system has no descriptors left.
  static absl::StatusOr<std::unique_ptr<Loop>> Create();
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // From any thread.

  // Runs `posted` on the thread that leads, soon and in no other function's middle. REQUIRES: not
  // posted already.
  void Post(Posted& posted);
  // Completes `event` in the same way.
  void Complete(Event& event, bool ok);
  // Whether this thread leads it.
  bool leading() const { return led_here == this; }
  // The loop that this thread leads, or nullptr.
  static Loop* Here() { return led_here; }
  // Ends Lead. What is posted after that is run by nobody.
  void Stop();

  // Only from the thread that leads.

  // Tells `watcher` of `events` (epoll's; level triggered) at `fd`, until Unwatch. False when the
  // system has no memory for it.
  bool Watch(int fd, uint32_t events, Watcher& watcher);
  void Rewatch(int fd, uint32_t events, Watcher& watcher);
  void Unwatch(int fd);

  // Runs `posted` when the iteration is over: before the loop waits. REQUIRES: not posted already.
  void AtIterationEnd(Posted& posted) { at_end_.Push(posted); }

  // Runs `posted` before everything else that is ready. REQUIRES: not posted already.
  void PostNext(Posted& posted) { ready_.PushFirst(posted); }
  // A watcher has left something to be read when what is ready has run: that look is one more. The
  // end of the iteration is not put off for ever.
  void LookAgain() { looks_again_ = true; }
  bool has_ready() const { return !ready_.empty(); }

  Timers& timers() { return timers_; }
  // When this iteration began.
  Clock::time_point now() const { return now_; }

  // Leads until the lead is handed over or the loop is stopped. REQUIRES: nobody leads it.
  void Lead();
  // Gives up the lead without stopping, for who takes it over: called by ThreadPool.
  static void Leave() { led_here = nullptr; }

 private:
  Loop(int epoll, int wakeup) : epoll_(epoll), wakeup_(wakeup) {}
  void Iterate();
  bool RunReady();
  // Waits for at most `milliseconds` (-1: for ever) and tells the watchers; whether there was any.
  bool Poll(int milliseconds);
  int Timeout() const;

  static thread_local Loop* led_here;

  const int epoll_;
  const int wakeup_;  // an eventfd, written to when the leader waits
  Inbox inbox_;
  std::atomic<bool> waits_{false};
  std::atomic<bool> stopped_{false};
  ReadyList ready_;
  ReadyList at_end_;
  bool looks_again_ = false;
  Timers timers_;
  Clock::time_point now_ = Clock::now();
};

}  // namespace quantd::loop

#endif  // QUANTD_SERVER_LOOP_LOOP_H_
