// What a connection may receive, and how much of what its peer causes may wait for the peer.
//
// - A peer without credit (frame_credit.h) is not read for a while.
// - The backlog of a connection is what waits for its peer's socket (responses, refusals, resets,
//   acknowledgements) or window (texts of refusals), header blocks that do not end, and input that
//   was read before. Over a limit of its own, a connection is not read until the peer has read half
//   of that, and is closed if that takes too long. All connections share a table
//   (TransportContext::backlog); if that has no room, a connection with much of it is closed.
// - A header block has to end within ten seconds.
//
// It knows no socket. Used on the thread that leads the connection's loop.
#ifndef QUANTD_SERVER_TRANSPORT_FLOW_CONTROL_H_
#define QUANTD_SERVER_TRANSPORT_FLOW_CONTROL_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "server/scheduling/places.h"
#include "server/transport/frame_credit.h"
#include "server/transport/frame_walk.h"
#include "server/transport/transport_context.h"

namespace quantd::transport {

class FlowControl {
 public:
  // The size of an ordinary read (not in place), for all connections of a peer together, averaged
  // over eight: it may contain thousands of small calls, which are computed before others are read.
  static constexpr size_t kPlainBytes = 64 << 10;
  // A connection with no more of the backlog than this is not closed for it.
  static constexpr size_t kFairBacklog = 8 << 10;

  // `holder`: the connection, which has a place among the connections.
  FlowControl(TransportContext& context, scheduling::Holder& holder, loop::Clock::time_point now)
      : context_(context), holder_(holder), credit_(now) {
    ShareReads();
  }
  // Gives back what the connection has.
  void Close();

  FrameCredit& credit() { return credit_; }

  // ---- Receiving

  bool may_read() const { return !throttled_ && !held_back_ && !deaf_; }
  bool throttled() const { return throttled_; }
  // The size of an ordinary read: smaller if the peer has many connections.
  size_t read_size() const { return read_size_; }
  // Counts a read. `is_over`: it has no effect any more; a peer that sends too much of that is no
  // longer read. Returns whether may_read() has changed.
  bool Received(size_t bytes, bool is_over);
  // If the credit is spent, stops reading for the time that this returns; then comes EndPause.
  std::optional<std::chrono::milliseconds> Throttle();
  void EndPause(loop::Clock::time_point now);

  // ---- The backlog

  // Whether too much waits: `unsent` bytes without those of messages, which permits cover, and
  // calls that the peer has reset, but whose frames wait. They do not count as streams in HTTP/2.
  bool BackedUp(size_t unsent, size_t calls) const;
  // Stops reading. Keeps the rest of what was read.
  void HoldBack(const uint8_t* data, size_t size, loop::Clock::time_point now);
  bool held_back() const { return held_back_; }
  // Reads again once enough has been sent. Returns whether it does.
  bool LetGo(size_t unsent, size_t calls);
  const std::string& kept() const { return kept_; }
  std::string TakeKept() { return std::exchange(kept_, std::string()); }
  // The peer has taken so many bytes.
  void Wrote(size_t bytes, loop::Clock::time_point now) {
    pace_.Moved(now, bytes, context_.limits.min_rate);
  }
  // Counts what waits. `refusals`: see Http2. False: the connection must be closed.
  bool Charge(size_t unsent, size_t refusals, const FrameWalk& walk, bool blocked);

  // Called a few times a second. The reason, if the connection must be closed.
  std::optional<ConnectionEnd> Look(loop::Clock::time_point now, const FrameWalk& walk);

 private:
  void ShareReads();

  TransportContext& context_;
  scheduling::Holder& holder_;
  FrameCredit credit_;
  size_t read_size_ = kPlainBytes;
  bool throttled_ = false;
  bool deaf_ = false;
  size_t thrown_away_ = 0;  // bytes received that had no effect
  bool held_back_ = false;
  std::string kept_;         // what had been read before that
  scheduling::Pace pace_;    // of what the peer takes meanwhile
  scheduling::Place place_;  // in the table of the backlog
  uint64_t block_ = 0;       // the number of the header block at the last look
  loop::Clock::time_point block_began_at_;
};

}  // namespace quantd::transport

#endif  // QUANTD_SERVER_TRANSPORT_FLOW_CONTROL_H_
