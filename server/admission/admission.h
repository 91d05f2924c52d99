// Who may go on: bounds the memory and the number of the requests that are being worked on.
//
//   Permit permit;
//   Admission::Waiting waiting;
//   absl::StatusOr<bool> now = admission.Request({bytes, peer, &loop, &admitted}, waiting, permit);
//   if (now.ok() && !*now) co_await admitted;
//   ...                                    // work
//   permit.Computed();                     // it counts no longer, only its memory does
//   ...                                    // send the response
//   permit.Release();                      // or its destructor: the next go on, on their loops
//
// A call that keeps something while it waits for its client, or for a permit beside it, holds that
// memory (Hold): it never waits for it, and what is held is half of the budget at most, so that
// those who hold can go on.
//
// Small requests have a queue of their own and a part of the memory that large ones leave alone, so
// that they never wait behind large ones. In each queue peers take turns (loop/fair_queue.h), and a
// peer's own are first come, first served. The queues are bounded, and their last quarter is never
// one peer's: what does not fit is refused at once, so that a client can go elsewhere.
#ifndef QUANTD_SERVER_ADMISSION_ADMISSION_H_
#define QUANTD_SERVER_ADMISSION_ADMISSION_H_

#include <array>
#include <cstdint>
#include <mutex>

#include "absl/status/statusor.h"
#include "server/loop/event.h"
#include "server/loop/fair_queue.h"
#include "server/loop/loop.h"
#include "server/loop/peer_share.h"

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

  uint64_t bytes() const { return bytes_; }
  // Gives back all but `bytes`. Does nothing when it has no more than that.
  void Shrink(uint64_t bytes);
  // The work is done, only the memory is still needed: another request may be worked on.
  void Computed();
  // Gives everything back. Does nothing on an empty permit.
  void Release();

 private:
  friend class Admission;
  Admission* admission_ = nullptr;
  uint64_t bytes_ = 0;
  bool held_ = false;
  bool small_ = false;
  bool counted_ = false;
};

struct AdmissionRequest {
  uint64_t bytes = 0;
  uint64_t peer = 0;           // whose turn it is
  loop::Loop* loop = nullptr;  // where `granted` completes
  loop::Event* granted = nullptr;
  uint64_t held = 0;  // bytes that the same call holds besides
};

// Safe from any thread. Outlives its permits.
class Admission {
 public:
  // Requests up to this size are small.
  static constexpr uint64_t kSmallBytes = 256 << 10;

  explicit Admission(const Limits& limits);

  // A request in the queue. It and its permit stay where they are until `granted` completes.
  class Waiting : public loop::FairQueue::Entry {
   private:
    friend class Admission;
    AdmissionRequest request_;
    Permit* permit_ = nullptr;
  };

  // Asks for memory. True: `permit` is good. False: it will be when `granted` completes with true;
  // with false Cancel came first. Whoever holds a permit must not wait for another one, or two that
  // do so wait for each other. RESOURCE_EXHAUSTED (names --memory_budget_bytes): these bytes alone
  // are over the budget. UNAVAILABLE: the queue is full; worth a retry.
  absl::StatusOr<bool> Request(const AdmissionRequest& request, Waiting& waiting, Permit& permit);
  // Adds `bytes` to what `held` holds, a Permit that is empty or came from here: at first up to
  // `spare` of `from`, then of what is free. RESOURCE_EXHAUSTED (names the flag): it would be over
  // half of the budget. UNAVAILABLE: they are not free now; worth a retry.
  absl::Status Hold(uint64_t bytes, uint64_t spare, Permit& from, Permit& held);
  // Takes a request out of the queue. False, and nothing happens, when it is not in it.
  bool Cancel(Waiting& waiting);

  // Requests that are being worked on, bytes of all permits, and requests that wait.
  int64_t inflight_requests() const;
  uint64_t inflight_bytes() const;
  int64_t queued_requests() const;

  // Whether somebody would gain if a permit came back.
  bool anyone_waits() const { return queued_requests() > 0; }
  // Whether half of everything is free and nobody waits: a request may then hold what it has for
  // longer than it must.
  bool has_plenty() const;
  // How often Hold has said UNAVAILABLE.
  uint64_t holds_refused() const;
  // For how long somebody has been waiting without a break; 0 when nobody is.
  loop::Clock::duration crowded_for() const;

 private:
  friend class Permit;
  enum Lane { kSmall, kLarge };
  uint64_t all_bytes() const { return bytes_[kSmall] + bytes_[kLarge] + held_bytes_; }
  static Lane LaneOf(uint64_t bytes) { return bytes <= kSmallBytes ? kSmall : kLarge; }
  // REQUIRES for all of these: mutex_ held.
  bool Fits(Lane lane, uint64_t bytes) const;
  bool LargestWaits() const;
  void Take(uint64_t bytes, Permit& permit);
  void GiveBack(Permit& permit, uint64_t bytes, bool count);
  void GrantWaiting();

  const Limits limits_;
  const uint64_t large_bytes_;  // of large requests together
  const int64_t large_requests_;
  mutable std::mutex mutex_;
  std::array<loop::FairQueue, 2> queues_;
  std::array<uint64_t, 2> bytes_{};
  std::array<int64_t, 2> requests_{};
  uint64_t held_bytes_ = 0;
  uint64_t holds_refused_ = 0;
  loop::Clock::time_point crowded_since_;
  loop::PeerShares queue_shares_;  // of the places in both queues
};

}  // namespace quantd::admission

#endif  // QUANTD_SERVER_ADMISSION_ADMISSION_H_
