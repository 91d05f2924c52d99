#include "server/transport/flow_control.h"

#include <algorithm>

#include "server/transport/http2.h"

namespace quantd::transport {
namespace {

using loop::Clock;

constexpr size_t kMostUnsent = 64 << 10;
// A stream that nghttp2 keeps for the text of a refusal.
constexpr size_t kHttpRefusalBytes = 512;
// Bytes received after everything is sent: a peer that sends more is no longer read.
constexpr size_t kMostThrownAway = 64 << 10;
// A read with fewer bytes costs credit: see FrameCredit.
constexpr size_t kTinyRead = 64;
constexpr double kTinyReadCost = 0.25;
constexpr std::chrono::seconds kMostBlockTime{10};
// Each connection reads at least this much; with so many connections of its peer, all of it.
constexpr size_t kLeastPlainBytes = 2 << 10;
constexpr size_t kFullReaders = 8;

}  // namespace

void FlowControl::Close() {
  if (std::exchange(throttled_, false)) context_.counters.throttled_now.fetch_sub(1);
  context_.backlog.Give(place_);
}

void FlowControl::ShareReads() {
  const uint64_t readers = std::max<uint64_t>(context_.connections.Of(holder_.peer()), 1);
  read_size_ = std::clamp(kPlainBytes * kFullReaders / readers, kLeastPlainBytes, kPlainBytes);
}

bool FlowControl::Received(size_t bytes, bool is_over) {
  credit_.SpendBytes(bytes);
  if (bytes < kTinyRead) credit_.Spend(kTinyReadCost);
  if (!is_over || (thrown_away_ += bytes) <= kMostThrownAway) return false;
  return !std::exchange(deaf_, true);
}

std::optional<std::chrono::milliseconds> FlowControl::Throttle() {
  if (!credit_.spent()) return std::nullopt;
  throttled_ = true;
  return credit_.Pause(context_.counters.throttled_now.fetch_add(1) + 1);
}

void FlowControl::EndPause(Clock::time_point now) {
  credit_.Refill(now, context_.counters.throttled_now.fetch_sub(1));
  throttled_ = false;
}

bool FlowControl::BackedUp(size_t unsent, size_t calls) const {
  return unsent > kMostUnsent || calls > 2 * size_t{context_.limits.max_streams};
}

void FlowControl::HoldBack(const uint8_t* data, size_t size, Clock::time_point now) {
  if (!std::exchange(held_back_, true)) pace_.Start(now);
  kept_.assign(reinterpret_cast<const char*>(data), size);
}

bool FlowControl::LetGo(size_t unsent, size_t calls) {
  if (!held_back_ || BackedUp(2 * unsent, calls)) return false;
  held_back_ = false;
  return true;
}

bool FlowControl::Charge(size_t unsent, size_t refusals, const FrameWalk& walk, bool blocked) {
  size_t bytes = refusals * kHttpRefusalBytes;
  if (held_back_ || blocked || walk.in_block()) {
    // Decoded, a block may use twice its bytes.
    bytes += unsent + kept_.size() + (walk.in_block() ? 2 * walk.block_bytes() : 0);
  }
  const size_t had = place_.amount();
  if (bytes > had) {
    return context_.backlog.Take(place_, holder_, bytes - had) || bytes <= kFairBacklog;
  }
  if (bytes == 0) {
    context_.backlog.Give(place_);
  } else if (bytes < had) {
    context_.backlog.Shrink(place_, bytes);
  }
  return true;
}

std::optional<ConnectionEnd> FlowControl::Look(Clock::time_point now, const FrameWalk& walk) {
  ShareReads();
  if (!throttled_) credit_.Refill(now, std::max<int64_t>(context_.counters.throttled_now, 1));
  if (held_back_ && pace_.TooSlow(now, context_.limits.stall)) return ConnectionEnd::kUnread;
  // The block is the same as at the last look, although the connection was read.
  const bool same = walk.blocks() == std::exchange(block_, walk.blocks());
  if (!walk.in_block() || !same || !may_read()) {
    block_began_at_ = now;
  } else if (now - block_began_at_ > kMostBlockTime) {
    return ConnectionEnd::kHeaders;
  }
  return std::nullopt;
}

}  // namespace quantd::transport
