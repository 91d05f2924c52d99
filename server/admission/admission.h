// Admits requests: limits the memory and the number of requests that are in progress.
//
//   Permit permit;
//   Admission::Waiting waiting;
//   absl::StatusOr<bool> now = admission.Request({bytes, peer, &loop, &admitted}, waiting, permit);
//   if (now.ok() && !*now) co_await admitted;
//   ...                                    // work
//   permit.Computed();                     // the request no longer counts, only its memory does
//   ...                                    // send the response
//   permit.Release();                      // or its destructor; admits the next on their loops
//
// Small requests have a queue of their own and a part of the memory that large requests can't use,
// so they do not wait behind large ones. A request that needs more than the large ones' part waits
// until small ones leave it enough.
// In each queue peers take turns (scheduling/fair_queue.h); the requests of one peer are first
// come, first served. The queues are bounded. Each peer leaves others a part of them, of the memory
// of large requests (scheduling/places.h) and, unless it is alone, of the requests in progress.
// A request that does not fit is refused at once, so that the client can try elsewhere.
#ifndef QUANTD_SERVER_ADMISSION_ADMISSION_H_
#define QUANTD_SERVER_ADMISSION_ADMISSION_H_

#include <array>
#include <cstdint>
#include <mutex>
#include <numeric>

#include "absl/status/statusor.h"
#include "server/loop/event.h"
#include "server/loop/loop.h"
#include "server/scheduling/fair_queue.h"
#include "server/scheduling/places.h"

namespace quantd::admission {

struct Limits {
  uint64_t memory_budget_bytes = 0;  // of all permits together
  int64_t max_inflight_requests = 0;
  int64_t max_queued_requests = 0;
};

class Admission;

// The right to use some bytes until it is released. Movable; for one thread at a time.
class Permit {
 public:
  Permit() = default;
  Permit(Permit&& other) noexcept;
  Permit& operator=(Permit&& other) noexcept;
  ~Permit() { Release(); }

  uint64_t bytes() const { return bytes_; }
  // Returns all bytes but `bytes`. Does nothing if the permit has no more than that.
  void Shrink(uint64_t bytes);
  // Says that the work is done and only the memory is still needed, so another request can start.
  void Computed();
  // Returns everything. Does nothing if the permit is empty.
  void Release();

 private:
  friend class Admission;
  Admission* admission_ = nullptr;
  uint64_t bytes_ = 0;
  uint64_t peer_ = 0;
  enum Kind : uint8_t { kSmall, kLarge, kEnd };  // requests
  Kind kind_ = kSmall;
  bool counted_ = false;
};

struct AdmissionRequest {
  uint64_t bytes = 0;
  uint64_t peer = 0;           // whose turn is used
  loop::Loop* loop = nullptr;  // the loop on which `granted` completes
  loop::Event* granted = nullptr;
};

// Thread-safe. Must outlive its permits.
class Admission {
 public:
  // Requests up to this size are small.
  static constexpr uint64_t kSmallBytes = 256 << 10;

  explicit Admission(const Limits& limits);

  // A request in the queue. It and its permit must not move until `granted` completes.
  class Waiting : public scheduling::FairQueue::Entry {
   private:
    friend class Admission;
    AdmissionRequest request_;
    Permit* permit_ = nullptr;
  };

  // Asks for memory. True: `permit` is valid. False: `granted` will complete with true when the
  // permit is valid, or with false if Cancel came first. A caller that holds a permit must not wait
  // for another, or two such callers could wait for each other. RESOURCE_EXHAUSTED (names
  // --memory_budget_bytes): the bytes alone exceed the budget. UNAVAILABLE: the queue is full; the
  // client can retry.
  absl::StatusOr<bool> Request(const AdmissionRequest& request, Waiting& waiting, Permit& permit);
  // Removes a request from the queue. Returns false and does nothing if it is not in the queue.
  bool Cancel(Waiting& waiting);

  // Requests in progress, bytes of all permits, and requests in the queue.
  int64_t inflight_requests() const;
  uint64_t inflight_bytes() const;
  int64_t queued_requests() const;

  // Whether a returned permit would let another request start.
  bool anyone_waits() const { return queued_requests() > 0; }
  // Whether half of everything is free and no request waits. A request may then keep its permit for
  // longer than necessary.
  bool has_plenty() const;
  // For how long there has been a waiting request without a break; 0 if none waits.
  loop::Clock::duration crowded_for() const;

 private:
  friend class Permit;
  enum Lane { kSmall, kLarge };
  uint64_t all_bytes() const { return std::accumulate(bytes_.begin(), bytes_.end(), uint64_t{0}); }
  int64_t inflight() const { return static_cast<int64_t>(request_shares_.sum()); }
  static Lane LaneOf(uint64_t bytes) { return bytes <= kSmallBytes ? kSmall : kLarge; }
  // All of these require that mutex_ is held.
  bool Fits(Lane lane, uint64_t bytes) const;
  bool HasPlace(uint64_t peer) const;
  bool WithinShare(const AdmissionRequest& request) const;
  Waiting* Next(Lane lane) const;
  void Leave(Waiting& waiting, bool served);
  void Take(const AdmissionRequest& request, Permit& permit);
  void GiveBack(Permit& permit, uint64_t bytes, bool count);
  void GrantWaiting();

  const Limits limits_;
  const uint64_t large_bytes_;  // for all large requests together
  const int64_t most_large_requests_;
  mutable std::mutex mutex_;
  std::array<scheduling::FairQueue, 2> queues_;
  std::array<uint64_t, Permit::kEnd> bytes_{};  // by kind
  int64_t large_requests_ = 0;
  loop::Clock::time_point crowded_since_;
  loop::Clock::time_point shared_at_;      // when a peer asked beside requests of another
  scheduling::PeerShares request_shares_;  // of the requests in progress
  scheduling::PeerShares queue_shares_;    // of the places in both queues
  scheduling::PeerShares large_shares_;    // of the bytes of large requests
};

}  // namespace quantd::admission

#endif  // QUANTD_SERVER_ADMISSION_ADMISSION_H_
