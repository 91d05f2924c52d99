#include "server/scheduling/places.h"

#include <algorithm>
#include <utility>

namespace quantd::scheduling {

void Holder::Moved(loop::Clock::time_point now) {
  const loop::Clock::rep moved = now.time_since_epoch().count();
  loop::Clock::rep before = still_since_.load(std::memory_order_relaxed);
  while (before < moved &&
         !still_since_.compare_exchange_weak(before, moved, std::memory_order_relaxed)) {
  }
}

void Holder::Moved(loop::Clock::time_point now, uint64_t bytes, uint64_t rate) {
  const loop::Clock::rep before = still_since_.load(std::memory_order_relaxed);
  if (before == kBusy) return;
  const loop::Clock::time_point since{loop::Clock::duration(before)};
  Moved(Pace::After(since, now, bytes, rate));
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

void Place::Give() {
  if (table_ != nullptr) table_->Give(*this);
}

bool Place::lost() const {
  if (table_ == nullptr) return false;
  const std::lock_guard lock(table_->mutex_);
  return group_ == nullptr;
}

uint64_t PlaceTable::Has(uint64_t peer) const {
  const auto found = peers_.find(peer);
  return found == peers_.end() ? 0 : found->second.amount;
}

bool PlaceTable::IsNew(const Holder& holder) const {
  const auto found = peers_.find(holder.peer());
  return found == peers_.end() || found->second.groups.count(holder.group()) == 0;
}

// Adds to the sums that contain the place, or subtracts from them.
void PlaceTable::Count(const Place& place, int64_t by) {
  if (place.group_ == nullptr) {
    leaving_ += by;
    return;
  }
  taken_ += by;
  place.of_peer_->amount += by;
  place.group_->amount += by;
}

void PlaceTable::Add(Place& place, Holder& holder, uint64_t amount) {
  OfPeer& of_peer = peers_[holder.peer()];
  if (place.table_ == nullptr) {
    Group& group = of_peer.groups[holder.group()];
    place.table_ = this;
    place.holder_ = &holder;
    place.of_peer_ = &of_peer;
    place.group_ = &group;
    place.previous_ = nullptr;
    place.next_ = std::exchange(group.first, &place);
    if (place.next_ != nullptr) place.next_->previous_ = &place;
  }
  place.amount_ += amount;
  Count(place, static_cast<int64_t>(amount));
  // A call may take a place after it has stood still for some time.
  of_peer.still_since = std::min(of_peer.still_since, holder.still_since());
}

void PlaceTable::Unlink(Place& place) {
  Count(place, -static_cast<int64_t>(place.amount_));
  Group& group = *std::exchange(place.group_, nullptr);
  (place.previous_ == nullptr ? group.first : place.previous_->next_) = place.next_;
  if (place.next_ != nullptr) place.next_->previous_ = place.previous_;
  if (group.first != nullptr) return;
  place.of_peer_->groups.erase(place.holder_->group());
  if (place.of_peer_->groups.empty()) peers_.erase(place.holder_->peer());
}

bool PlaceTable::Take(Place& place, Holder& holder, uint64_t amount) {
  const std::lock_guard lock(mutex_);
  if (place.table_ != nullptr && place.group_ == nullptr) return false;  // it is lost
  const uint64_t peer = holder.peer();
  const uint64_t had = Has(peer);
  // Beyond this, those that leave must have left. It is twice as much for a connection that has
  // nothing, so that it does not wait for those that take places again and again.
  const uint64_t most_leaving = std::max<uint64_t>(most_ / (IsNew(holder) ? 8 : 16), 1);
  while (!Fits(peer, amount, had)) {
    if (leaving_ >= most_leaving) return false;
    const loop::Clock::time_point now = loop::Clock::now();
    Place* other = StillestOfAll(peer, amount, now);
    if (other == nullptr && otherwise_ == Otherwise::kOwn) {
      other = OfLargestGroup(holder, amount, now);
    }
    if (other == nullptr) return false;
    Displace(*other);
  }
  Add(place, holder, amount);
  return true;
}

void PlaceTable::Displace(Place& place) {
  Unlink(place);
  Count(place, static_cast<int64_t>(place.amount_));  // it is leaving
  ++displaced_;
  place.holder_->Displace();
}

// The place that has stood still for longest; of several, the oldest.
Place* PlaceTable::Stillest(const Group& group) {
  Place* stillest = group.first;
  for (Place* place = group.first; place != nullptr; place = place->next_) {
    if (place->holder_->still_since() <= stillest->holder_->still_since()) stillest = place;
  }
  return stillest;
}

// The same, since `since` or before.
Place* PlaceTable::Stillest(OfPeer& of_peer, loop::Clock::time_point since) {
  if (of_peer.still_since > since) return nullptr;  // it is not necessary to look at them
  Place* stillest = nullptr;
  of_peer.still_since = loop::Clock::time_point::max();
  for (const auto& [id, group] : of_peer.groups) {
    Place* const place = Stillest(group);
    const loop::Clock::time_point still =
        std::min(place->holder_->still_since(), loop::Clock::now());
    if (still >= of_peer.still_since) continue;
    of_peer.still_since = still;
    stillest = place;
  }
  return of_peer.still_since > since ? nullptr : stillest;
}

bool PlaceTable::AllStill(loop::Clock::time_point since) const {
  for (const auto& [id, of_peer] : peers_) {
    for (const auto& [group_id, group] : of_peer.groups) {
      for (const Place* place = group.first; place != nullptr; place = place->next_) {
        if (place->holder_->still_since() > since) return false;
      }
    }
  }
  return true;
}

// What stands still, of the peer with the most; of `peer`, if it would exceed its share.
Place* PlaceTable::StillestOfAll(uint64_t peer, uint64_t amount, loop::Clock::time_point now) {
  const auto patience = std::min<loop::Clock::duration>(std::chrono::milliseconds(500), stall_);
  const bool stuck = otherwise_ == Otherwise::kNothing && AllStill(now - patience);
  const bool own = !WithinThreeQuarters(peer, amount);
  const uint64_t would_have = Has(peer) + amount;
  Place* stillest = nullptr;
  uint64_t most = 0;
  for (auto& [id, of_peer] : peers_) {
    if ((own && id != peer) || of_peer.amount <= most) continue;
    const bool at_once = otherwise_ == Otherwise::kOfAnyOther && of_peer.amount > would_have;
    Place* const place = Stillest(of_peer, at_once ? now : now - (stuck ? patience : stall_));
    if (place == nullptr) continue;
    stillest = place;
    most = of_peer.amount;
  }
  return stillest;
}

// Of the connection of the same peer that has the most, if that has far more.
Place* PlaceTable::OfLargestGroup(const Holder& holder, uint64_t amount,
                                  loop::Clock::time_point now) {
  constexpr uint64_t kFarMore = 4;
  const auto found = peers_.find(holder.peer());
  if (found == peers_.end()) return nullptr;
  const Group* largest = nullptr;
  uint64_t would_have = amount;
  for (const auto& [id, group] : found->second.groups) {
    if (id == holder.group()) would_have += group.amount;
    if (largest == nullptr || group.amount > largest->amount) largest = &group;
  }
  if (largest->amount / kFarMore < would_have) return nullptr;
  Place* const place = Stillest(*largest);
  return place->holder_->still_since() > now ? nullptr : place;  // all of it computes
}

void PlaceTable::Shrink(Place& place, uint64_t amount) {
  if (place.table_ == nullptr || place.amount_ <= amount) return;
  const std::lock_guard lock(mutex_);
  Count(place, -static_cast<int64_t>(place.amount_ - amount));
  place.amount_ = amount;
}

void PlaceTable::Give(Place& place) {
  const std::lock_guard lock(mutex_);
  if (std::exchange(place.table_, nullptr) == nullptr) return;
  if (place.group_ != nullptr) {
    Unlink(place);
  } else {
    leaving_ -= place.amount_;
  }
  place.amount_ = 0;
}

bool PlaceTable::Within(uint64_t peer, uint64_t amount) const {
  const std::lock_guard lock(mutex_);
  return WithinThreeQuarters(peer, amount);
}

bool PlaceTable::MayTake(uint64_t peer, uint64_t amount) const {
  const std::lock_guard lock(mutex_);
  return WithinShare(most_, most_ - taken_, Has(peer), amount);
}

uint64_t PlaceTable::Of(uint64_t peer) const {
  const std::lock_guard lock(mutex_);
  return Has(peer);
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
