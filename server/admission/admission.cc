#include "server/admission/admission.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"

namespace quantd::admission {
namespace {

// A peer is alone if no other has asked for this long.
constexpr std::chrono::seconds kAlone{10};

// The part of large requests. Small ones get an eighth of the budget, at most what 128 of them
// need.
uint64_t LargeBytes(uint64_t budget) {
  return budget - std::min<uint64_t>(budget / 8, 128 * Admission::kSmallBytes);
}

}  // namespace

Permit::Permit(Permit&& other) noexcept { *this = std::move(other); }

Permit& Permit::operator=(Permit&& other) noexcept {
  if (this == &other) return *this;
  Release();
  admission_ = std::exchange(other.admission_, nullptr);
  bytes_ = std::exchange(other.bytes_, 0);
  peer_ = other.peer_;
  kind_ = other.kind_;
  counted_ = std::exchange(other.counted_, false);
  return *this;
}

void Permit::Shrink(uint64_t bytes) {
  if (bytes >= bytes_) return;
  const std::lock_guard lock(admission_->mutex_);
  admission_->GiveBack(*this, bytes_ - bytes, false);
}

void Permit::Computed() {
  if (!counted_) return;
  const std::lock_guard lock(admission_->mutex_);
  admission_->GiveBack(*this, 0, true);
}

void Permit::Release() {
  Admission* const admission = std::exchange(admission_, nullptr);
  if (admission == nullptr) return;
  const std::lock_guard lock(admission->mutex_);
  admission->GiveBack(*this, bytes_, counted_);
}

Admission::Admission(const Limits& limits)
    : limits_(limits),
      large_bytes_(LargeBytes(limits.memory_budget_bytes)),
      most_large_requests_(
          std::max<int64_t>(limits.max_inflight_requests - limits.max_inflight_requests / 4, 1)),
      request_shares_(static_cast<uint64_t>(limits.max_inflight_requests)),
      queue_shares_(static_cast<uint64_t>(limits.max_queued_requests)),
      large_shares_(large_bytes_) {}

bool Admission::Fits(Lane lane, uint64_t bytes) const {
  if (bytes > limits_.memory_budget_bytes - all_bytes()) return false;
  if (lane == kSmall) return true;
  // A request that is larger than the whole part is let in if no other large request is.
  if (large_requests_ == 0 && bytes_[kLarge] == 0) return true;
  return large_requests_ < most_large_requests_ && bytes_[kLarge] + bytes <= large_bytes_;
}

// A request in progress ends by itself, so a peer that is alone may have all places.
bool Admission::HasPlace(uint64_t peer) const {
  if (inflight() >= limits_.max_inflight_requests) return false;
  return request_shares_.Within(peer, 1) || loop::Clock::now() - shared_at_ > kAlone;
}

bool Admission::WithinShare(const AdmissionRequest& request) const {
  return HasPlace(request.peer) &&
         (LaneOf(request.bytes) == kSmall || large_shares_.Within(request.peer, request.bytes));
}

// The next request in the queue. The peers that have their share let others pass.
Admission::Waiting* Admission::Next(Lane lane) const {
  return static_cast<Waiting*>(queues_[lane].FirstOf([this](scheduling::FairQueue::Entry& entry) {
    return WithinShare(static_cast<Waiting&>(entry).request_);
  }));
}

void Admission::Leave(Waiting& waiting, bool served) {
  queues_[LaneOf(waiting.request_.bytes)].Remove(waiting, served);
  queue_shares_.Give(waiting.request_.peer, 1);
}

void Admission::Take(const AdmissionRequest& request, Permit& permit) {
  const Lane lane = LaneOf(request.bytes);
  request_shares_.Take(request.peer, 1);
  bytes_[lane] += request.bytes;
  if (lane == kLarge) {
    ++large_requests_;
    large_shares_.Take(request.peer, request.bytes);
  }
  permit.admission_ = this;
  permit.bytes_ = request.bytes;
  permit.peer_ = request.peer;
  permit.kind_ = lane == kSmall ? Permit::kSmall : Permit::kLarge;
  permit.counted_ = true;
}

absl::StatusOr<bool> Admission::Request(const AdmissionRequest& request, Waiting& waiting,
                                        Permit& permit) {
  const std::lock_guard lock(mutex_);
  if (request.bytes > limits_.memory_budget_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the request needs ", request.bytes, " bytes of memory, the server allows ",
                     limits_.memory_budget_bytes, " (--memory_budget_bytes)"));
  }
  if (request_shares_.Of(request.peer) != request_shares_.sum()) shared_at_ = loop::Clock::now();
  const Lane lane = LaneOf(request.bytes);
  if (queues_[lane].empty() && Fits(lane, request.bytes) && WithinShare(request)) {
    Take(request, permit);
    return true;
  }
  const auto queued = static_cast<int64_t>(queues_[kSmall].size() + queues_[kLarge].size());
  if (queued >= limits_.max_queued_requests) {
    return absl::UnavailableError(absl::StrCat(
        "the server is busy: ", inflight(), " requests with ", all_bytes(),
        " bytes are in progress and ", queued, " wait (--max_queued_requests); try again later"));
  }
  if (!queue_shares_.Within(request.peer, 1)) {
    return absl::UnavailableError(
        absl::StrCat("the server is busy: ", queue_shares_.Of(request.peer),
                     " requests of this client wait, and ", limits_.max_queued_requests,
                     " may wait in all (--max_queued_requests); try again later"));
  }
  if (queued == 0) crowded_since_ = loop::Clock::now();
  waiting.request_ = request;
  waiting.permit_ = &permit;
  queue_shares_.Take(request.peer, 1);
  queues_[lane].Push(waiting, request.peer, request.bytes);
  if (Next(lane) != &waiting || !Fits(lane, request.bytes)) return false;
  Leave(waiting, true);
  Take(request, permit);
  return true;
}

bool Admission::Cancel(Waiting& waiting) {
  {
    const std::lock_guard lock(mutex_);
    if (!waiting.queued()) return false;
    Leave(waiting, false);
    GrantWaiting();  // the next in the queue may be smaller
  }
  waiting.request_.loop->Complete(*waiting.request_.granted, false);
  return true;
}

void Admission::GiveBack(Permit& permit, uint64_t bytes, bool count) {
  permit.bytes_ -= bytes;
  bytes_[permit.kind_] -= bytes;
  if (permit.kind_ == Permit::kLarge) large_shares_.Give(permit.peer_, bytes);
  if (count) {
    permit.counted_ = false;
    request_shares_.Give(permit.peer_, 1);
    if (permit.kind_ == Permit::kLarge) --large_requests_;
  }
  GrantWaiting();
}

// Granted calls resume on their own loops, not here: the thread that returns memory must not do
// their work.
void Admission::GrantWaiting() {
  for (const Lane lane : {kSmall, kLarge}) {
    while (Waiting* const next = Next(lane)) {
      if (!Fits(lane, next->request_.bytes)) break;
      Leave(*next, true);
      Take(next->request_, *next->permit_);
      next->request_.loop->Complete(*next->request_.granted, true);
    }
  }
}

int64_t Admission::inflight_requests() const {
  const std::lock_guard lock(mutex_);
  return inflight();
}

uint64_t Admission::inflight_bytes() const {
  const std::lock_guard lock(mutex_);
  return all_bytes();
}

bool Admission::has_plenty() const {
  const std::lock_guard lock(mutex_);
  const uint64_t half = limits_.memory_budget_bytes / 2;
  return queues_[kSmall].size() + queues_[kLarge].size() == 0 && all_bytes() <= half &&
         inflight() <= limits_.max_inflight_requests / 2;
}

loop::Clock::duration Admission::crowded_for() const {
  const std::lock_guard lock(mutex_);
  if (queues_[kSmall].empty() && queues_[kLarge].empty()) return {};
  return loop::Clock::now() - crowded_since_;
}

int64_t Admission::queued_requests() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int64_t>(queues_[kSmall].size() + queues_[kLarge].size());
}

}  // namespace quantd::admission
