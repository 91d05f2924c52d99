#include "server/stored_parameters/cache.h"

#include <utility>

namespace quantd::stored_parameters {

// In addition to its bytes: messages, and nodes of the map and the list.
uint64_t Cache::Footprint(const wire::StoredSet& set) { return set.bytes.capacity() + 4096; }

SetPointer Cache::Find(const std::string& reference) {
  const std::lock_guard lock(mutex_);
  const auto found = sets_.find(reference);
  if (found == sets_.end()) return nullptr;
  used_.splice(used_.begin(), used_, found->second);
  return used_.front();
}

void Cache::DropTo(uint64_t bytes) {
  while (kept_ > bytes) {
    kept_ -= Footprint(*used_.back());
    sets_.erase(used_.back()->reference);
    used_.pop_back();
  }
}

bool Cache::MakeRoom(uint64_t bytes, uint64_t more) {
  const uint64_t needed = bytes + more;
  if (needed > most_bytes_) return false;
  const std::lock_guard lock(mutex_);
  if (live_bytes() + needed > most_bytes_) {
    const uint64_t excess = live_bytes() + needed - most_bytes_;
    DropTo(kept_ > excess ? kept_ - excess : 0);
  }
  return live_bytes() + needed <= most_bytes_;
}

SetPointer Cache::Add(std::unique_ptr<wire::StoredSet> set) {
  const uint64_t bytes = Footprint(*set);
  live_->fetch_add(bytes, std::memory_order_relaxed);
  SetPointer shared(set.release(), [live = live_, bytes](const wire::StoredSet* gone) {
    delete gone;
    live->fetch_sub(bytes, std::memory_order_relaxed);
  });
  const std::lock_guard lock(mutex_);
  if (bytes > keep_bytes_) return shared;
  const auto found = sets_.find(shared->reference);
  if (found != sets_.end()) return *found->second;
  DropTo(keep_bytes_ - bytes);
  used_.push_front(shared);
  sets_[shared->reference] = used_.begin();
  kept_ += bytes;
  return shared;
}

uint64_t Cache::kept_bytes() const {
  const std::lock_guard lock(mutex_);
  return kept_;
}

}  // namespace quantd::stored_parameters
