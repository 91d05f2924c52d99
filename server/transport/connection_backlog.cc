// What a peer has caused and does not read: responses, refusals, resets and acknowledgements that
// wait for its socket, texts of refusals that wait for its window, header blocks that do not end,
// and input that was read before. All of it is counted here, whatever frame caused it, and bounded:
// - a connection over its limit is not read until the peer has read half of that, and is closed if
//   that takes too long;
// - if all connections together are over their limit, those with a large and growing backlog are
//   closed at once; if those of one peer are over its share of that (loop/peer_share.h), its
//   connections with a large backlog are closed, even if it does not grow.
#include <algorithm>
#include <utility>

#include "server/scheduling/peer_share.h"
#include "server/transport/connection.h"
#include "server/transport/head.h"

namespace quantd::transport {
namespace {

using loop::Clock;

// Waiting bytes, without those of messages, which permits cover.
constexpr size_t kMostUnsent = 64 << 10;
// A frame in nghttp2's queue, without our header fields.
constexpr size_t kItemBytes = 256;
// A stream that nghttp2 keeps for the text of a refusal.
constexpr size_t kHttpRefusalBytes = 512;
// Bytes fed to HTTP/2 before its output is checked; less if the socket takes nothing.
constexpr size_t kFeedBytes = 4 << 10;
constexpr size_t kFeedBytesBlocked = 512;
// The most bytes of a header block, on the wire and decoded. Blocks over Head::kMaxBytes and below
// this are answered.
constexpr size_t kMostBlockBytes = 2 * Head::kMaxBytes;
constexpr std::chrono::seconds kMostBlockTime{10};
// The limit for one connection, if all together have too much.
constexpr size_t kFairBacklog = 8 << 10;

}  // namespace

size_t Connection::unsent() const {
  if (session_ == nullptr) return 0;
  return control_.size() - control_sent_ + submitted_ +
         nghttp2_session_get_outbound_queue_size(session_) * kItemBytes;
}

// Calls that the peer has reset, but whose frames wait, do not count as streams in HTTP/2.
bool Connection::BackedUp() const {
  return unsent() > kMostUnsent || stream_count_ > 2 * size_t{context_.limits.max_streams};
}

void Connection::HoldBack(const uint8_t* data, size_t size) {
  if (!std::exchange(held_back_, true)) held_pace_.Start(loop_.now(), written_);
  kept_.assign(reinterpret_cast<const char*>(data), size);
  SetEvents();
}

// Reads again once enough has been sent.
void Connection::LetGo() {
  if (unsent() > kMostUnsent / 2 || stream_count_ > 2 * size_t{context_.limits.max_streams}) return;
  held_back_ = false;
  SetEvents();
  ReadSoon();
}

// Whether further input is useless.
bool Connection::IsOver() const {
  return lingers_ || (session_ != nullptr && nghttp2_session_want_read(session_) == 0);
}

// Returns false if the connection is over, or held back again.
bool Connection::FeedKept() {
  if (held_back_) return false;
  const std::string kept = std::exchange(kept_, std::string());
  if (!FeedWatchfully(reinterpret_cast<const uint8_t*>(kept.data()), kept.size())) {
    End(ConnectionEnd::kProtocolError);
  }
  dropped_.clear();  // it may be held back for long
  return !closed_ && !held_back_;
}

// Feeds HTTP/2 in small amounts, and sends the resulting output. Keeps the rest of the input if the
// peer does not read. Returns false if the connection is over.
bool Connection::FeedWatchfully(const uint8_t* data, size_t size) {
  while (size != 0 && !closed_) {
    if (BackedUp()) Flush();
    if (closed_) break;
    if (BackedUp()) {
      HoldBack(data, size);
      break;
    }
    const size_t piece = std::min(size, blocked_ ? kFeedBytesBlocked : kFeedBytes);
    if (!Feed(data, piece)) return false;
    data += piece;
    size -= piece;
  }
  return true;
}

// Called for every header field. Returns false if the connection must end.
bool Connection::CountField(size_t bytes) {
  block_decoded_ += bytes;
  credit_.SpendFields(bytes);
  return block_decoded_ <= kMostBlockBytes;
}

// Ends the connection with an HTTP/2 error, once; its input is ignored from then on.
void Connection::EndForHeaders() {
  if (std::exchange(ended_for_headers_, true)) return;
  Note(ConnectionEnd::kHeaders);
  nghttp2_session_terminate_session(session_, NGHTTP2_ENHANCE_YOUR_CALM);
  WantFlush();
}

void Connection::Charge() {
  const bool waits = held_back_ || blocked_ || walk_.in_block();
  if (!waits && http_refusals_.empty() && charged_ == 0) return;
  size_t bytes = http_refusals_.size() * kHttpRefusalBytes;
  // Decoded, a block may use twice its bytes.
  if (waits) bytes += unsent() + kept_.size() + (walk_.in_block() ? 2 * walk_.block_bytes() : 0);
  const auto grown = static_cast<int64_t>(bytes) - static_cast<int64_t>(charged_);
  if (grown == 0) return;
  charged_ = bytes;
  const int64_t all = context_.counters.backlog.fetch_add(grown, std::memory_order_relaxed) + grown;
  const int64_t own = account_->backlog.fetch_add(grown, std::memory_order_relaxed) + grown;
  const int64_t most = context_.limits.max_backlog;
  if (grown > 0 && bytes > kFairBacklog && (all > most || own > scheduling::ShareOfOnePeer(most))) {
    End(ConnectionEnd::kUnread);
  }
}

// Returns false if the connection may be gone.
bool Connection::LookAtBacklog(Clock::time_point now) {
  const Limits& limits = context_.limits;
  if (held_back_ && held_pace_.TooSlow(now, written_, limits.min_rate, limits.stall)) {
    End(ConnectionEnd::kUnread);
    return false;
  }
  if (charged_ > kFairBacklog && account_->backlog.load(std::memory_order_relaxed) >
                                     scheduling::ShareOfOnePeer(limits.max_backlog)) {
    End(ConnectionEnd::kUnread);
    return false;
  }
  // The block is the same as at the last look, although the connection was read.
  const bool same = walk_.blocks() == std::exchange(block_, walk_.blocks());
  if (!walk_.in_block() || !same || !listens()) {
    block_began_at_ = now;
  } else if (now - block_began_at_ > kMostBlockTime) {
    End(ConnectionEnd::kHeaders);
    return false;
  }
  return true;
}

}  // namespace quantd::transport
