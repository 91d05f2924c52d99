// The order of a connection's uploads. Large messages are let in one after the other, the oldest
// first: if four of 16 MiB arrive together, none is in a cache when it is complete, which takes a
// fifth of the rate (`quantd_bench table --filter="Quantize tcp 16 MiB x 4"`). For the same reason
// an upload gets memory for all of it only in its turn. Until then it has memory for its window,
// because what a stream may send unasked is let in at any time. An upload makes others wait only
// while its bytes arrive quickly, and for a quarter of a second at most, because the others may be
// those of other clients behind a proxy; and only within a machine, because elsewhere others use
// the time in which a window goes to its client.
#include <chrono>
#include <utility>

#include "server/transport/connection.h"
#include "server/transport/server_call.h"

namespace quantd::transport {
namespace {

constexpr std::chrono::milliseconds kInOrder{250};
constexpr std::chrono::milliseconds kMoving{10};
// As many bytes arrive in kMoving while an upload is quick.
constexpr size_t kMovedBytes = 256 << 10;

}  // namespace

bool ServerCall::WantsWindow() const {
  return incoming_ == Incoming::kBody && charge_ > receiving_.window() && !interrupted() &&
         !waits_for_room_ && Allowed() < static_cast<int64_t>(total_ - received_) &&
         loop_.now() - message_began_at_ < kInOrder;
}

void ServerCall::NoteMove(size_t size) {
  if (received_ / kMovedBytes != (received_ - size) / kMovedBytes) moved_at_ = loop_.now();
}

bool ServerCall::IsOlderThan(const ServerCall& other) const {
  return std::pair(message_began_at_, id_) < std::pair(other.message_began_at_, other.id_);
}

bool ServerCall::WaitsItsTurn() {
  if (waits_its_turn_) return true;
  if (!connection_->path_.is_local || !WantsWindow()) return false;
  if (!connection_->HasOlderUpload(*this)) return false;
  waits_its_turn_ = true;
  connection_->uploads_.Wait();
  return true;
}

void ServerCall::TakeTurn() {
  waits_its_turn_ = false;
  if (incoming_ == Incoming::kBody) AskForMore();
}

void Connection::GrantWindow(ServerCall& stream, int64_t bytes) {
  nghttp2_submit_window_update(session_, NGHTTP2_FLAG_NONE, stream.id_,
                               static_cast<int32_t>(bytes));
  has_grants_ = true;
  WantFlush();
}

bool Connection::HasOlderUpload(const ServerCall& stream) const {
  for (const ServerCall* other = streams_; other != nullptr; other = other->next_) {
    const bool counts = other->waits_its_turn_ || loop_.now() - other->moved_at_ < kMoving;
    if (counts && other->IsOlderThan(stream) && other->WantsWindow()) return true;
  }
  return false;
}

void Connection::LetUploadsIn() {
  if (!uploads_.waiting || std::exchange(uploads_.letting_in, true)) return;
  for (bool more = true; more;) {
    ServerCall* oldest = nullptr;
    for (ServerCall* stream = streams_; stream != nullptr; stream = stream->next_) {
      const bool waits = stream->waits_its_turn_ && !stream->interrupted();
      if (waits && (oldest == nullptr || stream->IsOlderThan(*oldest))) oldest = stream;
    }
    uploads_.waiting = oldest != nullptr;
    if (oldest != nullptr) oldest->TakeTurn();
    more = oldest != nullptr && !oldest->WantsWindow();
  }
  uploads_.letting_in = false;
}

void Connection::Uploads::Wait() {
  waiting = true;
  if (!set()) connection_.loop_.timers().Set(*this, connection_.loop_.now() + kMoving);
}

void Connection::Uploads::Fire() {
  connection_.LetUploadsIn();
  if (waiting) Wait();
}

}  // namespace quantd::transport
