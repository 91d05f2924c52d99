// Who may go on: bounds the memory and the number of the requests that are being worked on.
//
//   Permit permit;
//   absl::StatusOr<bool> now = admission.Request(bytes, permit, [&] { admitted.Complete(true); });
//   if (now.ok() && !*now) co_await admitted;
//   ...                                    // work, send the answer
//   permit.Release();                      // or its destructor: the next one in the queue goes on
//
// First come, first served: a large request is never starved by small ones behind it. The queue is
// bounded as well: what does not fit is refused at once, so that a client can go elsewhere.
#ifndef QUANTD_SERVER_ADMISSION_ADMISSION_H_
#define QUANTD_SERVER_ADMISSION_ADMISSION_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>

#include "absl/status/statusor.h"

namespace quantd::admission {

struct Limits {
  uint64_t memory_budget_bytes = 0;  // of all permits together
  int64_t max_inflight_requests = 0;
  int64_t max_queued_requests = 0;
};

class Admission;

// The right to use some bytes until it is released. Movable; not safe to be used from two threads.
class Permit {
 public:
  Permit() = default;
  Permit(Permit&& other) noexcept;
  Permit& operator=(Permit&& other) noexcept;
  ~Permit() { Release(); }

  // Gives the bytes back, and lets those go on that waited for them: their `granted` run before
  // Release returns. Does nothing on an empty permit.
  void Release();

 private:
  friend class Admission;
  Admission* admission_ = nullptr;
  uint64_t bytes_ = 0;
};

// Safe from any thread. Outlives its permits.
class Admission {
 public:
  explicit Admission(const Limits& limits) : limits_(limits) {}

  // Asks for `bytes`. True: `permit` is good. False: it will be, and then `granted` is called, on
  // the thread that releases another permit; `permit` must stay where it is until then, and whoever
  // holds another permit must not wait with it, or two that do so wait for each other.
  // RESOURCE_EXHAUSTED (names --memory_budget_bytes): these bytes alone are over the
  // budget. UNAVAILABLE: the queue is full; worth a retry.
  absl::StatusOr<bool> Request(uint64_t bytes, Permit& permit, std::function<void()> granted);

  // Requests that hold a permit, their bytes, and requests that wait for one.
  int64_t inflight_requests() const;
  uint64_t inflight_bytes() const;
  int64_t queued_requests() const;
  // Most bytes in flight at any time since the last call.
  uint64_t TakePeakBytes();

 private:
  friend class Permit;
  struct Waiting {
    uint64_t bytes;
    Permit* permit;
    std::function<void()> granted;
  };
  bool Fits(uint64_t bytes) const;  // REQUIRES: mutex_ held
  void Take(uint64_t bytes, Permit& permit);
  void Release(uint64_t bytes);

  const Limits limits_;
  mutable std::mutex mutex_;
  std::deque<Waiting> waiting_;
  int64_t inflight_requests_ = 0;
  uint64_t inflight_bytes_ = 0;
  uint64_t peak_bytes_ = 0;
};

}  // namespace quantd::admission

#endif  // QUANTD_SERVER_ADMISSION_ADMISSION_H_
