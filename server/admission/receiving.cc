// See receiving.h.
#include "server/admission/receiving.h"

#include <algorithm>
#include <utility>

#include "server/memory/buffer.h"

namespace quantd::admission {
namespace {

// Less than this in kPatience is no movement.
constexpr uint64_t kMoved = 16 << 10;
constexpr std::chrono::milliseconds kPatience{500};

uint64_t Footprint(uint64_t bytes) { return memory::Pool::Footprint(bytes); }

}  // namespace

void Upload::Run() {
  bool given_up = false;
  {
    const std::lock_guard lock(receiving_->mutex_);
    posted_ = false;
    given_up = given_up_;
  }
  if (given_up) {
    OnGivenUp();
  } else {
    OnRoom();
  }
}

// First windows have an eighth, but a thousand of them are enough.
Receiving::Receiving(uint64_t budget_bytes, uint64_t window, int64_t max_waiting)
    : window_(window),
      max_waiting_(max_waiting),
      first_budget_(std::clamp(budget_bytes / 8, window, 1024 * window)),
      large_budget_(budget_bytes - first_budget_) {}

void Receiving::Tell(Upload& upload) {
  if (std::exchange(upload.posted_, true)) return;
  upload.loop_->Post(upload);
}

Receiving::Begun Receiving::Begin(Upload& upload, uint64_t total, uint64_t peer, loop::Loop& loop) {
  const std::lock_guard lock(mutex_);
  upload.loop_ = &loop;
  upload.receiving_ = this;
  upload.peer_ = peer;
  upload.total_ = total;
  upload.granted_ = std::min(total, window_);
  upload.given_up_ = false;
  upload.received_.store(0, std::memory_order_relaxed);
  if (total > window_ && queue_.empty() && large_held_ + total <= large_budget_ / 2 &&
      Reserve(upload)) {
    upload.holds_ = true;
    return Begun::kReserved;
  }
  const bool crowded = total > window_ && static_cast<int64_t>(queue_.size()) >= max_waiting_;
  if (crowded || first_held_ + upload.granted_ > first_budget_) return Begun::kRefused;
  upload.held_first_ = upload.granted_;
  first_held_ += upload.held_first_;
  upload.state_ = Upload::State::kFirst;
  upload.holds_ = true;
  return Begun::kFirst;
}

// Sets aside all of it, if there is room.
bool Receiving::Reserve(Upload& upload) {
  const uint64_t wanted = std::min(Footprint(upload.total_), large_budget_);
  if (large_held_ - upload.held_ + wanted > large_budget_) return false;
  large_held_ += wanted - upload.held_;
  upload.held_ = wanted;
  first_held_ -= std::exchange(upload.held_first_, 0);
  if (upload.state_ == Upload::State::kNone || upload.state_ == Upload::State::kFirst) {
    upload.place_ = large_.insert(large_.end(), &upload);
  }
  upload.state_ = Upload::State::kReserved;
  upload.seen_ = upload.received_.load(std::memory_order_relaxed);
  upload.moved_at_ = loop::Clock::now();
  return true;
}

Receiving::Room Receiving::Extend(Upload& upload, uint64_t received) {
  const std::lock_guard lock(mutex_);
  upload.received_.store(received, std::memory_order_relaxed);
  using State = Upload::State;
  if (upload.total_ > upload.granted_ || upload.state_ == State::kReserved) {
    if (upload.state_ == State::kFirst || upload.state_ == State::kStopped) {
      if (!queue_.empty() || !Reserve(upload)) {
        if (upload.state_ == State::kFirst) upload.place_ = large_.insert(large_.end(), &upload);
        upload.state_ = State::kWaiting;
        upload.moved_at_ = loop::Clock::now();
        queue_.Push(upload, upload.peer_, upload.total_);
      }
    }
    if (upload.state_ == State::kReserved) {
      const uint64_t wanted = received + std::max<uint64_t>(kStep, received);
      upload.granted_ = std::max(upload.granted_, std::min(upload.total_, wanted));
    }
  }
  return {upload.granted_, upload.state_ == State::kReserved};
}

bool Receiving::TakeFirst(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (first_held_ + bytes > first_budget_) return false;
  first_held_ += bytes;
  return true;
}

void Receiving::GiveFirst(uint64_t bytes) {
  if (bytes == 0) return;
  const std::lock_guard lock(mutex_);
  first_held_ -= bytes;
}

void Receiving::Release(Upload& upload) {
  using State = Upload::State;
  if (!std::exchange(upload.holds_, false)) return;
  const std::lock_guard lock(mutex_);
  if (upload.queued()) queue_.Remove(upload, false);
  if (upload.state_ != State::kFirst) large_.erase(upload.place_);
  first_held_ -= std::exchange(upload.held_first_, 0);
  large_held_ -= std::exchange(upload.held_, 0);
  upload.state_ = State::kNone;
  GrantWaiting();
}

bool Receiving::Told(const Upload& upload) const {
  const std::lock_guard lock(mutex_);
  return upload.posted_;
}

// Whether somebody can go on who could not.
bool Receiving::GrantWaiting() {
  bool any = false;
  while (loop::FairQueue::Entry* const first = queue_.First()) {
    auto& upload = static_cast<Upload&>(*first);
    if (!Reserve(upload)) break;
    queue_.Remove(upload, true);
    Tell(upload);
    any = true;
  }
  return any;
}

// It keeps what has come and what it has been told that it may send.
void Receiving::Stop(Upload& upload) {
  upload.state_ = Upload::State::kStopped;
  const uint64_t kept = std::min(upload.held_, Footprint(upload.granted_));
  large_held_ -= upload.held_ - kept;
  upload.held_ = kept;
}

void Receiving::GiveUpOne() {
  Upload* longest = nullptr;
  for (Upload* upload : large_) {
    if (upload->given_up_) return;  // its memory is on its way back
    const bool stands = upload->state_ == Upload::State::kStopped ||
                        (upload->state_ == Upload::State::kWaiting && upload != queue_.First());
    if (!stands || upload->held_ == 0) continue;
    if (longest == nullptr || upload->moved_at_ < longest->moved_at_) longest = upload;
  }
  if (longest == nullptr) return;
  longest->given_up_ = true;
  ++given_up_;
  Tell(*longest);
}

void Receiving::Look(loop::Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  if (queue_.empty()) return;
  bool moves = false;
  for (Upload* upload : large_) {
    const uint64_t received = upload->received_.load(std::memory_order_relaxed);
    if (received == upload->total_) {
      moves = true;  // its memory comes back without its client
      continue;
    }
    if (upload->state_ != Upload::State::kReserved) continue;
    if (received - upload->seen_ >= kMoved) {
      upload->seen_ = received;
      upload->moved_at_ = now;
    } else if (now - upload->moved_at_ > kPatience) {
      Stop(*upload);
      continue;
    }
    moves = true;
  }
  if (GrantWaiting()) moves = true;
  if (!moves && !queue_.empty()) GiveUpOne();
}

uint64_t Receiving::held_bytes() const {
  const std::lock_guard lock(mutex_);
  return first_held_ + large_held_;
}

int64_t Receiving::waiting() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int64_t>(queue_.size());
}

uint64_t Receiving::given_up() const {
  const std::lock_guard lock(mutex_);
  return given_up_;
}

}  // namespace quantd::admission
