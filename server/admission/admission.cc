// See admission.h.
#include "server/admission/admission.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace quantd::admission {

Permit::Permit(Permit&& other) noexcept
    : admission_(std::exchange(other.admission_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

Permit& Permit::operator=(Permit&& other) noexcept {
  if (this == &other) return *this;
  Release();
  admission_ = std::exchange(other.admission_, nullptr);
  bytes_ = std::exchange(other.bytes_, 0);
  return *this;
}

void Permit::Release() {
  Admission* const admission = std::exchange(admission_, nullptr);
  if (admission != nullptr) admission->Release(std::exchange(bytes_, 0));
}

bool Admission::Fits(uint64_t bytes) const {
  return inflight_requests_ < limits_.max_inflight_requests &&
         bytes <= limits_.memory_budget_bytes - inflight_bytes_;
}

void Admission::Take(uint64_t bytes, Permit& permit) {
  ++inflight_requests_;
  inflight_bytes_ += bytes;
  peak_bytes_ = std::max(peak_bytes_, inflight_bytes_);
  permit.admission_ = this;
  permit.bytes_ = bytes;
}

absl::StatusOr<bool> Admission::Request(uint64_t bytes, Permit& permit,
                                        std::function<void()> granted) {
  const std::lock_guard lock(mutex_);
  if (bytes > limits_.memory_budget_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the request needs ", bytes, " bytes of memory, the server allows ",
                     limits_.memory_budget_bytes, " (--memory_budget_bytes)"));
  }
  if (!waiting_.empty() || !Fits(bytes)) {
    if (static_cast<int64_t>(waiting_.size()) >= limits_.max_queued_requests) {
      return absl::UnavailableError(absl::StrCat("the server is busy: ", inflight_requests_,
                                                 " requests with ", inflight_bytes_,
                                                 " bytes are being worked on and ", waiting_.size(),
                                                 " wait (--max_queued_requests); try again later"));
    }
    waiting_.push_back({bytes, &permit, std::move(granted)});
    return false;
  }
  Take(bytes, permit);
  return true;
}

void Admission::Release(uint64_t bytes) {
  std::vector<std::function<void()>> granted;
  {
    const std::lock_guard lock(mutex_);
    --inflight_requests_;
    inflight_bytes_ -= bytes;
    while (!waiting_.empty() && Fits(waiting_.front().bytes)) {
      Take(waiting_.front().bytes, *waiting_.front().permit);
      granted.push_back(std::move(waiting_.front().granted));
      waiting_.pop_front();
    }
  }
  for (const std::function<void()>& resume : granted) resume();
}

int64_t Admission::inflight_requests() const {
  const std::lock_guard lock(mutex_);
  return inflight_requests_;
}

uint64_t Admission::inflight_bytes() const {
  const std::lock_guard lock(mutex_);
  return inflight_bytes_;
}

int64_t Admission::queued_requests() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int64_t>(waiting_.size());
}

uint64_t Admission::TakePeakBytes() {
  const std::lock_guard lock(mutex_);
  return std::exchange(peak_bytes_, inflight_bytes_);
}

}  // namespace quantd::admission
