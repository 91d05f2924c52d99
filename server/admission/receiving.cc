#include "server/admission/receiving.h"

#include <algorithm>
#include <utility>

#include "server/memory/buffer.h"

namespace quantd::admission {

void Upload::Run() {
  {
    const std::lock_guard lock(receiving_->mutex_);
    posted_ = false;
  }
  OnRoom();
}

// First windows get an eighth of the budget, at most the size of a thousand windows.
Receiving::Receiving(uint64_t budget_bytes, uint64_t window, int64_t max_waiting,
                     std::chrono::milliseconds stall)
    : window_(window),
      max_waiting_(max_waiting),
      first_(std::clamp(budget_bytes / 8, window, 1024 * window), stall),
      large_(budget_bytes - std::min(budget_bytes, first_.most()), stall,
             scheduling::PlaceTable::Otherwise::kNothing),
      waiting_shares_(static_cast<uint64_t>(max_waiting)) {}

// What the buffer of the whole message takes.
uint64_t Receiving::Footprint(const Upload& upload) const {
  return std::min(memory::Pool::Footprint(upload.total_), large_.most());
}

// The next upload of a peer that is within its share.
Upload* Receiving::Next() const {
  return static_cast<Upload*>(queue_.FirstOf([this](scheduling::FairQueue::Entry& entry) {
    const auto& upload = static_cast<Upload&>(entry);
    return large_.MayTake(upload.holder_->peer(), Footprint(upload));
  }));
}

Receiving::Begun Receiving::Begin(Upload& upload, uint64_t total, scheduling::Holder& holder,
                                  loop::Loop& loop) {
  const std::lock_guard lock(mutex_);
  upload.loop_ = &loop;
  upload.receiving_ = this;
  upload.holder_ = &holder;
  upload.total_ = total;
  upload.granted_ = std::min(total, window_);
  // An upload that may not wait later gets its memory now, or is refused.
  const bool may_wait = static_cast<int64_t>(queue_.size()) < max_waiting_ &&
                        waiting_shares_.Within(holder.peer(), 1);
  const bool at_once = !may_wait || large_.taken() + total <= large_.most() / 2;
  if (total > small() && at_once && Next() == nullptr && Reserve(upload)) {
    upload.holds_ = true;
    return Begun::kReserved;
  }
  if (total > window_ && !may_wait) return Begun::kRefused;
  if (!first_.Take(upload.first_, holder, memory::Pool::Footprint(upload.granted_))) {
    return Begun::kRefused;
  }
  upload.holds_ = true;
  return Begun::kFirst;
}

// Reserves memory for the whole message, if there is room.
bool Receiving::Reserve(Upload& upload) {
  if (!large_.Take(upload.whole_, *upload.holder_, Footprint(upload))) return false;
  if (large_.taken() > large_.most()) {  // those who lost their places have not left yet
    large_.Give(upload.whole_);
    return false;
  }
  first_.Give(upload.first_);
  return true;
}

Receiving::Room Receiving::Extend(Upload& upload, uint64_t received) {
  const std::lock_guard lock(mutex_);
  const auto reserved = [&upload] { return upload.whole_.amount() != 0; };
  if (!reserved() && !upload.queued() && upload.total_ > upload.granted_ &&
      (Next() != nullptr || !Reserve(upload))) {
    queue_.Push(upload, upload.holder_->peer(), upload.total_);
    waiting_shares_.Take(upload.holder_->peer(), 1);
  }
  if (reserved()) {
    const uint64_t wanted = received + std::max<uint64_t>(kStep, received);
    upload.granted_ = std::max(upload.granted_, std::min(upload.total_, wanted));
  }
  return {upload.granted_, reserved()};
}

void Receiving::Leave(Upload& upload, bool served) {
  queue_.Remove(upload, served);
  waiting_shares_.Give(upload.holder_->peer(), 1);
}

void Receiving::Release(Upload& upload) {
  if (!std::exchange(upload.holds_, false)) return;
  const std::lock_guard lock(mutex_);
  if (upload.queued()) Leave(upload, false);
  first_.Give(upload.first_);
  large_.Give(upload.whole_);
  GrantWaiting();
}

bool Receiving::Told(const Upload& upload) const {
  const std::lock_guard lock(mutex_);
  return upload.posted_;
}

// Lets waiting uploads continue.
void Receiving::GrantWaiting() {
  while (Upload* const upload = Next()) {
    if (!Reserve(*upload)) break;
    Leave(*upload, true);
    if (!std::exchange(upload->posted_, true)) upload->loop_->Post(*upload);
  }
}

void Receiving::Look() {
  const std::lock_guard lock(mutex_);
  GrantWaiting();
}

uint64_t Receiving::held_bytes() const {
  const std::lock_guard lock(mutex_);
  return first_.taken() + large_.taken();
}

int64_t Receiving::waiting() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int64_t>(queue_.size());
}

}  // namespace quantd::admission
