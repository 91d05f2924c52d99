#include "server/admission/receiving.h"

#include <algorithm>
#include <utility>

#include "server/memory/buffer.h"

namespace quantd::admission {
namespace {

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

// First windows get an eighth of the budget, at most the size of a thousand windows.
Receiving::Receiving(uint64_t budget_bytes, uint64_t window, int64_t max_waiting, uint64_t min_rate,
                     std::chrono::milliseconds stall)
    : window_(window),
      max_waiting_(max_waiting),
      first_(std::clamp(budget_bytes / 8, window, 1024 * window), stall),
      large_budget_(budget_bytes - std::min(budget_bytes, first_.most())),
      min_rate_(min_rate),
      stall_(stall),
      large_shares_(large_budget_),
      waiting_shares_(static_cast<uint64_t>(max_waiting)) {}

void Receiving::SetLarge(Upload& upload, uint64_t bytes) {
  large_held_ += bytes - upload.held_;
  large_shares_.Take(upload.peer_, bytes);
  large_shares_.Give(upload.peer_, std::exchange(upload.held_, bytes));
}

// Whether the peer's share has room for the whole message. What the upload holds counts already.
bool Receiving::WithinShare(const Upload& upload) const {
  const uint64_t wanted = std::min(Footprint(upload.total_), large_budget_);
  return large_shares_.Of(upload.peer_) == upload.held_ ||
         large_shares_.Within(upload.peer_, wanted - std::min(upload.held_, wanted));
}

// The next upload of a peer that is within its share.
Upload* Receiving::Next() const {
  return static_cast<Upload*>(queue_.FirstOf([this](scheduling::FairQueue::Entry& entry) {
    return WithinShare(static_cast<Upload&>(entry));
  }));
}

void Receiving::Tell(Upload& upload) {
  if (std::exchange(upload.posted_, true)) return;
  upload.loop_->Post(upload);
}

Receiving::Begun Receiving::Begin(Upload& upload, uint64_t total, scheduling::Holder& holder,
                                  loop::Loop& loop) {
  const uint64_t peer = holder.peer();
  const std::lock_guard lock(mutex_);
  upload.loop_ = &loop;
  upload.receiving_ = this;
  upload.peer_ = peer;
  upload.total_ = total;
  upload.granted_ = std::min(total, window_);
  upload.given_up_ = false;
  upload.received_.store(0, std::memory_order_relaxed);
  // An upload that may not wait later gets its memory now, or is refused.
  const bool may_wait =
      static_cast<int64_t>(queue_.size()) < max_waiting_ && waiting_shares_.Within(peer, 1);
  const bool at_once = !may_wait || large_held_ + total <= large_budget_ / 2;
  if (total > small() && at_once && Next() == nullptr && Reserve(upload)) {
    upload.holds_ = true;
    return Begun::kReserved;
  }
  if (total > window_ && !may_wait) {
    refused_ = true;
    return Begun::kRefused;
  }
  if (!first_.Take(upload.first_, holder, Footprint(upload.granted_))) return Begun::kRefused;
  upload.state_ = Upload::State::kFirst;
  upload.holds_ = true;
  return Begun::kFirst;
}

// Reserves memory for the whole message, if there is room.
bool Receiving::Reserve(Upload& upload) {
  const uint64_t wanted = std::min(Footprint(upload.total_), large_budget_);
  if (large_held_ - upload.held_ + wanted > large_budget_ || !WithinShare(upload)) return false;
  SetLarge(upload, wanted);
  first_.Give(upload.first_);
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
  const bool is_large = upload.state_ == State::kReserved || upload.state_ == State::kStopped;
  if (upload.total_ > upload.granted_ || is_large) {
    if (upload.state_ == State::kFirst || upload.state_ == State::kStopped) {
      // An upload that was stopped when it could already send everything holds all of its memory,
      // and waits for nothing.
      const bool has_all = upload.total_ == upload.granted_;
      if ((!has_all && Next() != nullptr) || !Reserve(upload)) {
        if (upload.state_ == State::kFirst) upload.place_ = large_.insert(large_.end(), &upload);
        upload.state_ = State::kWaiting;
        upload.moved_at_ = loop::Clock::now();
        queue_.Push(upload, upload.peer_, upload.total_);
        waiting_shares_.Take(upload.peer_, 1);
      }
    }
    if (upload.state_ == State::kReserved) {
      const uint64_t wanted = received + std::max<uint64_t>(kStep, received);
      upload.granted_ = std::max(upload.granted_, std::min(upload.total_, wanted));
    }
  }
  return {upload.granted_, upload.state_ == State::kReserved};
}

void Receiving::Release(Upload& upload) {
  using State = Upload::State;
  if (!std::exchange(upload.holds_, false)) return;
  const std::lock_guard lock(mutex_);
  if (upload.queued()) {
    queue_.Remove(upload, false);
    waiting_shares_.Give(upload.peer_, 1);
  }
  if (upload.state_ != State::kFirst) large_.erase(upload.place_);
  first_.Give(upload.first_);
  SetLarge(upload, 0);
  upload.state_ = State::kNone;
  GrantWaiting();
}

bool Receiving::Told(const Upload& upload) const {
  const std::lock_guard lock(mutex_);
  return upload.posted_;
}

// Lets waiting uploads continue. Returns whether any could.
bool Receiving::GrantWaiting() {
  bool any = false;
  while (Upload* const upload = Next()) {
    if (!Reserve(*upload)) break;
    queue_.Remove(*upload, true);
    waiting_shares_.Give(upload->peer_, 1);
    Tell(*upload);
    any = true;
  }
  return any;
}

// The upload keeps the bytes that have arrived and those that it may already send.
void Receiving::Stop(Upload& upload) {
  upload.state_ = Upload::State::kStopped;
  const uint64_t kept = std::min(upload.held_, Footprint(upload.granted_));
  SetLarge(upload, kept);
}

void Receiving::GiveUpOne() {
  Upload* longest = nullptr;
  const Upload* const next = Next();
  for (Upload* upload : large_) {
    if (upload->given_up_) return;  // its memory will be returned soon
    const bool stands = upload->state_ == Upload::State::kStopped ||
                        (upload->state_ == Upload::State::kWaiting && upload != next);
    if (!stands || upload->held_ == 0) continue;
    if (longest == nullptr || upload->moved_at_ < longest->moved_at_) longest = upload;
  }
  if (longest == nullptr) return;
  GiveUp(*longest);
}

void Receiving::GiveUp(Upload& upload) {
  upload.given_up_ = true;
  ++given_up_;
  Tell(upload);
}

// Gives up uploads that have stood still for long, of the peer with the most, until there is room
// for the next one in the queue.
void Receiving::GiveUpForNext(loop::Clock::time_point now) {
  const Upload* const next = Next();
  if (next == nullptr) return;
  const uint64_t wanted = std::min(Footprint(next->total_), large_budget_);
  uint64_t held = large_held_ - next->held_;
  for (const Upload* upload : large_) held -= upload->given_up_ ? upload->held_ : 0;
  while (held > large_budget_ - wanted) {
    Upload* stillest = nullptr;
    for (Upload* upload : large_) {
      const bool stands =
          upload->state_ == Upload::State::kStopped || upload->state_ == Upload::State::kWaiting;
      if (!stands || upload == next || upload->given_up_ || upload->held_ == 0) continue;
      if (now - upload->moved_at_ < stall_) continue;
      const auto order = [&](const Upload& one) {
        return std::pair(large_shares_.Of(one.peer_), now - one.moved_at_);
      };
      if (stillest == nullptr || order(*upload) > order(*stillest)) stillest = upload;
    }
    if (stillest == nullptr) return;
    held -= stillest->held_;
    GiveUp(*stillest);
  }
}

void Receiving::Look(loop::Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  if (queue_.empty() && !std::exchange(refused_, false)) return;
  bool moves = false;
  for (Upload* upload : large_) {
    const uint64_t received = upload->received_.load(std::memory_order_relaxed);
    if (received == upload->total_ && upload->state_ != Upload::State::kWaiting) {
      moves = true;  // its memory is returned without its client
      continue;
    }
    if (upload->state_ != Upload::State::kReserved) continue;
    if (received - upload->seen_ >= std::max<uint64_t>(min_rate_ / 2, 1)) {
      upload->seen_ = received;
      upload->moved_at_ = now;
    } else if (now - upload->moved_at_ > kPatience) {
      Stop(*upload);
      continue;
    }
    moves = true;
  }
  if (GrantWaiting()) moves = true;
  GiveUpForNext(now);
  if (!moves && !queue_.empty()) GiveUpOne();
}

uint64_t Receiving::held_bytes() const {
  const std::lock_guard lock(mutex_);
  return first_.taken() + large_held_;
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
