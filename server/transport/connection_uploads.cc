// The order of a connection's uploads. Large messages are let in one after the other, the oldest
// first: if four of 16 MiB arrive together, none is in a cache when it is complete, which takes a
// fifth of the rate (`quantd_bench table --filter="Quantize tcp 16 MiB x 4"`). For the same reason
// an upload gets memory for all of it only in its turn. Until then it has memory for its window,
// because what a stream may send unasked is let in at any time. An upload that takes long neither
// waits for others nor makes them wait: its client may be slow, and the others may be those of
// other clients behind a proxy.
#include <chrono>

#include "server/transport/connection.h"
#include "server/transport/server_call.h"

namespace quantd::transport {
namespace {

constexpr std::chrono::milliseconds kInOrder{250};

}  // namespace

bool ServerCall::WantsWindow() const {
  return incoming_ == Incoming::kBody && charge_ > receiving_.window() && !interrupted() &&
         !waits_for_room_ && Allowed() < static_cast<int64_t>(total_ - received_) &&
         loop_.now() - message_began_at_ < kInOrder;
}

bool ServerCall::WaitsItsTurn() {
  if (waits_its_turn_ || !WantsWindow() || !connection_->HasOlderUpload(*this)) {
    return waits_its_turn_;
  }
  waits_its_turn_ = true;
  connection_->uploads_wait_ = true;
  return true;
}

void ServerCall::TakeTurn() {
  waits_its_turn_ = false;
  if (incoming_ == Incoming::kBody && !interrupted()) AskForMore();
}

void Connection::GrantWindow(ServerCall& stream, int64_t bytes) {
  nghttp2_submit_window_update(session_, NGHTTP2_FLAG_NONE, stream.id_,
                               static_cast<int32_t>(bytes));
  has_grants_ = true;
  WantFlush();
}

bool Connection::HasOlderUpload(const ServerCall& stream) const {
  for (const ServerCall* other = stream.next_; other != nullptr; other = other->next_) {
    if (other->WantsWindow()) return true;
  }
  return false;
}

void Connection::LetNextUploadIn() {
  if (!uploads_wait_) return;
  ServerCall* oldest = nullptr;
  for (ServerCall* stream = streams_; stream != nullptr; stream = stream->next_) {
    if (stream->waits_its_turn_ && !stream->interrupted()) oldest = stream;
  }
  uploads_wait_ = oldest != nullptr;
  if (oldest != nullptr) oldest->TakeTurn();
}

void Connection::LookAtUploads() {
  if (!uploads_wait_) return;
  for (ServerCall* stream = streams_; stream != nullptr; stream = stream->next_) {
    if (stream->waits_its_turn_ && !stream->WantsWindow()) stream->TakeTurn();
  }
  LetNextUploadIn();
}

}  // namespace quantd::transport
