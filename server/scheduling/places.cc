#include "server/scheduling/places.h"

#include <algorithm>
#include <utility>

namespace quantd::scheduling {

void Holder::Move(loop::Clock::rep now) {
  loop::Clock::rep before = still_since_.load(std::memory_order_relaxed);
  while (before < now &&
         !still_since_.compare_exchange_weak(before, now, std::memory_order_relaxed)) {
  }
}

void Holder::Moved(loop::Clock::time_point now, uint64_t bytes, uint64_t rate) {
  const loop::Clock::rep before = still_since_.load(std::memory_order_relaxed);
  if (before == kBusy) return;
  const auto earned = std::chrono::duration_cast<loop::Clock::duration>(
      std::chrono::duration<double>(static_cast<double>(bytes) / static_cast<double>(rate)));
  Move(std::min(before + earned.count(), now.time_since_epoch().count()));
}

void Holder::Displace() {
  if (told_.exchange(true, std::memory_order_relaxed)) return;
  posted_.store(true, std::memory_order_release);
  loop_.Post(*this);
}

void Holder::Run() {
  posted_.store(false, std::memory_order_release);
  OnDisplaced();
}

Place::Place(Place&& other) noexcept {
  if (other.table_ != nullptr) other.table_->MoveTo(other, *this);
}

Place::~Place() {
  if (table_ != nullptr) table_->Give(*this);
}

bool PlaceTable::WithinShare(uint64_t peer, uint64_t amount) const {
  const auto found = peers_.find(peer);
  if (found == peers_.end()) return true;
  const uint64_t share = ShareOfOnePeer(most_);
  return amount <= share && found->second.amount <= share - amount;
}

bool PlaceTable::Fits(uint64_t peer, uint64_t amount) const {
  return amount <= most_ && taken_ <= most_ - amount && WithinShare(peer, amount);
}

void PlaceTable::Add(Place& place, Holder& holder, uint64_t amount) {
  OfPeer& of_peer = peers_[holder.peer()];
  if (place.table_ == nullptr) {
    place.table_ = this;
    place.holder_ = &holder;
    place.of_peer_ = &of_peer;
    place.previous_ = nullptr;
    place.next_ = std::exchange(of_peer.first, &place);
    if (place.next_ != nullptr) place.next_->previous_ = &place;
  }
  place.amount_ += amount;
  of_peer.amount += amount;
  // A call may take a place after it has stood still for some time.
  of_peer.still_since =
      std::min(of_peer.still_since, std::min(holder.still_since(), loop::Clock::now()));
  taken_ += amount;
}

void PlaceTable::Unlink(Place& place) {
  OfPeer& of_peer = *std::exchange(place.of_peer_, nullptr);
  (place.previous_ == nullptr ? of_peer.first : place.previous_->next_) = place.next_;
  if (place.next_ != nullptr) place.next_->previous_ = place.previous_;
  of_peer.amount -= place.amount_;
  taken_ -= place.amount_;
  if (of_peer.first == nullptr) peers_.erase(place.holder_->peer());
}

bool PlaceTable::TakeFree(Place& place, Holder& holder, uint64_t amount) {
  const std::lock_guard lock(mutex_);
  const bool free = amount <= most_ && taken_ + leaving_ <= most_ - amount;
  if (!free || IsLeaving(place) || !WithinShare(holder.peer(), amount)) return false;
  Add(place, holder, amount);
  return true;
}

bool PlaceTable::Take(Place& place, Holder& holder, uint64_t amount) {
  const std::lock_guard lock(mutex_);
  if (IsLeaving(place)) return false;
  const uint64_t peer = holder.peer();
  const loop::Clock::time_point now = loop::Clock::now();
  // Beyond this, those that leave must have left.
  const uint64_t most_leaving = std::max<uint64_t>(most_ / 16, 1);
  while (!Fits(peer, amount)) {
    if (leaving_ >= most_leaving) return false;
    if (!DisplaceOne(peer, amount, now)) return false;
  }
  Add(place, holder, amount);
  return true;
}

void PlaceTable::MakeRoom(uint64_t peer, uint64_t amount) {
  const std::lock_guard lock(mutex_);
  const loop::Clock::time_point now = loop::Clock::now();
  while (!Fits(peer, amount) && DisplaceOne(peer, amount, now)) {
  }
}

// The place that has stood still for longest, since `since` or before.
Place* PlaceTable::Stillest(OfPeer& of_peer, loop::Clock::time_point since) {
  if (of_peer.still_since > since) return nullptr;  // it is not necessary to look at them
  Place* stillest = nullptr;
  of_peer.still_since = loop::Clock::time_point::max();
  for (Place* place = of_peer.first; place != nullptr; place = place->next_) {
    const loop::Clock::time_point still =
        std::min(place->holder_->still_since(), loop::Clock::now());
    if (still >= of_peer.still_since) continue;
    of_peer.still_since = still;
    stillest = place;
  }
  return of_peer.still_since > since ? nullptr : stillest;
}

// Displaces a call for `amount` more of the peer: one of its own if that exceeds its share.
bool PlaceTable::DisplaceOne(uint64_t peer, uint64_t amount, loop::Clock::time_point now) {
  constexpr uint64_t kFarMore = 4;
  const bool own = !WithinShare(peer, amount);
  const auto found = peers_.find(peer);
  const uint64_t would_have = amount + (found == peers_.end() ? 0 : found->second.amount);
  Place* stillest = nullptr;
  uint64_t most = 0;
  for (auto& [id, of_peer] : peers_) {
    if ((own && id != peer) || of_peer.amount <= most) continue;
    const bool far_more = of_peer.amount / kFarMore >= would_have;
    Place* const place = Stillest(of_peer, now - (far_more ? stall_ / 5 : stall_));
    if (place == nullptr) continue;
    stillest = place;
    most = of_peer.amount;
  }
  if (stillest == nullptr) return false;
  Unlink(*stillest);
  leaving_ += stillest->amount_;
  ++displaced_;
  stillest->holder_->Displace();
  return true;
}

void PlaceTable::Shrink(Place& place, uint64_t amount) {
  if (place.table_ == nullptr) return;
  const std::lock_guard lock(mutex_);
  const uint64_t less = place.amount_ - std::min(place.amount_, amount);
  place.amount_ -= less;
  if (place.of_peer_ == nullptr) {
    leaving_ -= less;
  } else {
    place.of_peer_->amount -= less;
    taken_ -= less;
  }
}

void PlaceTable::Give(Place& place) {
  if (std::exchange(place.table_, nullptr) == nullptr) return;
  const std::lock_guard lock(mutex_);
  if (place.of_peer_ == nullptr) {
    leaving_ -= place.amount_;
  } else {
    Unlink(place);
  }
  place.amount_ = 0;
}

void PlaceTable::MoveTo(Place& from, Place& to) {
  const std::lock_guard lock(mutex_);
  to.table_ = std::exchange(from.table_, nullptr);
  to.holder_ = from.holder_;
  to.of_peer_ = from.of_peer_;
  to.amount_ = std::exchange(from.amount_, 0);
  if (to.of_peer_ == nullptr) return;
  to.previous_ = from.previous_;
  to.next_ = from.next_;
  (to.previous_ == nullptr ? to.of_peer_->first : to.previous_->next_) = &to;
  if (to.next_ != nullptr) to.next_->previous_ = &to;
}

bool PlaceTable::Within(uint64_t peer, uint64_t amount) const {
  const std::lock_guard lock(mutex_);
  return WithinShare(peer, amount);
}

uint64_t PlaceTable::Of(uint64_t peer) const {
  const std::lock_guard lock(mutex_);
  const auto found = peers_.find(peer);
  return found == peers_.end() ? 0 : found->second.amount;
}

uint64_t PlaceTable::taken() const {
  const std::lock_guard lock(mutex_);
  return taken_ + leaving_;
}

uint64_t PlaceTable::displaced() const {
  const std::lock_guard lock(mutex_);
  return displaced_;
}

}  // namespace quantd::scheduling
