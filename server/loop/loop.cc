#include "server/loop/loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace quantd::loop {
namespace {

// How many times an iteration looks for more events before it writes its responses: as long as
// there are more, up to this limit.
constexpr int kLooks = 4;
constexpr int kEventsAtOnce = 64;

}  // namespace

thread_local Loop* Loop::led_here = nullptr;

absl::StatusOr<std::unique_ptr<Loop>> Loop::Create(const BusyPoll::Limits& busy_poll) {
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  const int wakeup = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  // Edge-triggered: each write is reported once, and the counter need not be read.
  epoll_event event{};
  event.events = EPOLLIN | EPOLLET;
  if (epoll < 0 || wakeup < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, wakeup, &event) != 0) {
    const int error = errno;
    if (epoll >= 0) close(epoll);
    if (wakeup >= 0) close(wakeup);
    return absl::UnavailableError(absl::StrCat("no event loop: ", std::strerror(error)));
  }
  return std::unique_ptr<Loop>(new Loop(epoll, wakeup, busy_poll));
}

Loop::~Loop() {
  close(epoll_);
  close(wakeup_);
}

void Loop::Post(Posted& posted) {
  if (leading()) {
    ready_.Push(posted);
    return;
  }
  inbox_.Push(posted);
  // Either the leader sees it before it waits, or this thread sees that the leader waits.
  if (waits_.exchange(false, std::memory_order_seq_cst)) {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(wakeup_, &one, sizeof(one));
  }
}

void Loop::Complete(Event& event, bool ok) {
  event.ok_ = ok;
  Post(event);
}

void Loop::Stop() {
  stopped_.store(true, std::memory_order_seq_cst);
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wakeup_, &one, sizeof(one));
}

bool Loop::Watch(int fd, uint32_t events, Watcher& watcher) {
  epoll_event event{};
  event.events = events;
  event.data.ptr = &watcher;
  return epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) == 0;
}

void Loop::Rewatch(int fd, uint32_t events, Watcher& watcher) {
  epoll_event event{};
  event.events = events;
  event.data.ptr = &watcher;
  epoll_ctl(epoll_, EPOLL_CTL_MOD, fd, &event);
}

void Loop::Unwatch(int fd) { epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, nullptr); }

void Loop::Lead() {
  led_here = this;
  while (led_here == this && !stopped_.load(std::memory_order_relaxed)) Iterate();
  if (led_here == this) led_here = nullptr;
}

void Loop::Iterate() {
  for (int look = 0; look < kLooks; ++look) {
    if (!RunReady()) return;
    if (at_end_.empty()) break;
    if (!Poll(0)) break;
  }
  if (!RunReady()) return;
  ReadyList ending;
  std::swap(ending, at_end_);
  while (!ending.empty()) ending.Pop().Run();
  if (!ready_.empty() || !at_end_.empty()) return;
  Poll(Timeout());
}

// Returns false if the lead was handed over; then the loop must not be used any more.
bool Loop::RunReady() {
  inbox_.MoveTo(ready_);
  while (!ready_.empty()) {
    ready_.Pop().Run();
    if (!leading()) return false;
  }
  return true;
}

int Loop::Timeout() const {
  if (timers_.empty()) return -1;
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(timers_.next() - Clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 60'000));
}

int Loop::PollOn(absl::Span<epoll_event> events) {
  const Clock::time_point end = Clock::now() + busy_poll_.moment();
  int count = 0;
  do {
    count = epoll_wait(epoll_, events.data(), kEventsAtOnce, 0);
  } while (count == 0 && inbox_.empty() && busy_poll_.MayGoOn() && Clock::now() < end);
  busy_poll_.Ended(count > 0 || !inbox_.empty());
  return count;
}

bool Loop::Poll(int milliseconds) {
  std::array<epoll_event, kEventsAtOnce> events;
  int count = 0;
  if (milliseconds != 0 && busy_poll_.IsWorthIt()) count = PollOn(absl::MakeSpan(events));
  if (count == 0 && milliseconds != 0) {
    waits_.store(true, std::memory_order_seq_cst);
    if (!inbox_.empty() || stopped_.load(std::memory_order_seq_cst)) milliseconds = 0;
  }
  if (count == 0 && milliseconds != 0) {
    busy_poll_.FallsAsleep();
    count = epoll_wait(epoll_, events.data(), kEventsAtOnce, milliseconds);
    busy_poll_.Wakes();
  } else if (count == 0) {
    count = epoll_wait(epoll_, events.data(), kEventsAtOnce, 0);
  }
  waits_.store(false, std::memory_order_relaxed);
  now_ = Clock::now();
  bool any = false;
  for (int i = 0; i < count; ++i) {
    auto* const watcher = static_cast<Watcher*>(events[i].data.ptr);
    if (watcher == nullptr) continue;  // the wake-up event
    any = true;
    watcher->OnReady(events[i].events);
  }
  timers_.Fire(now_);
  return any || !ready_.empty();
}

}  // namespace quantd::loop
