// Memory for messages that are on their way in. A message says its length first, so its memory is
// set aside before its bytes are let in; HTTP/2's flow control keeps out what has no place yet, and
// only that: other streams of the connection go on.
//
// What a stream may send unasked (its first window) is let in or refused. Beyond that a message
// waits until all of it has a place, so that what goes on can end; peers take turns. Three things
// keep those that move from waiting for those that do not:
// - when half of the memory is taken, a message is given a place only once its first window is
//   used up: who has sent little has asked for nothing;
// - a window grows with what has come (1 MiB, then as much again as is there);
// - while others wait, an upload that has stood for half a second keeps what it has and what its
//   window lets in, and asks for the rest when that is used up. When nobody can go on even so, the
//   one that has stood longest is given up.
#ifndef QUANTD_SERVER_ADMISSION_RECEIVING_H_
#define QUANTD_SERVER_ADMISSION_RECEIVING_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <list>
#include <mutex>

#include "server/loop/fair_queue.h"
#include "server/loop/loop.h"
#include "server/loop/peer_share.h"
#include "server/loop/posted.h"

namespace quantd::admission {

class Receiving;

// One message on its way in; of the loop of its connection. What it is told comes on that loop.
class Upload : private loop::FairQueue::Entry, private loop::Posted {
 public:
  bool holds() const { return holds_; }

 protected:
  Upload() = default;
  ~Upload() = default;  // REQUIRES: released, and not about to be told something (see Release)

  // It may go on: Receiving::Extend gives more now.
  virtual void OnRoom() = 0;
  // It is given up: others wait, and it has not moved. To be released soon.
  virtual void OnGivenUp() = 0;

 private:
  friend class Receiving;
  enum class State : uint8_t {
    kNone,
    kFirst,     // holds its first window, or all of it if it is small
    kReserved,  // holds all of it
    kWaiting,   // holds what it may have sent; in the queue for all of it
    kStopped,   // the same, but does not ask for more
  };
  void Run() override;

  loop::Loop* loop_ = nullptr;
  Receiving* receiving_ = nullptr;
  bool holds_ = false;  // touched by its loop only
  // The rest under Receiving's mutex.
  State state_ = State::kNone;
  uint64_t peer_ = 0;
  uint64_t total_ = 0;       // bytes of the message
  uint64_t granted_ = 0;     // bytes that the peer may send
  uint64_t held_first_ = 0;  // bytes set aside of what is for first windows
  uint64_t held_ = 0;        // bytes set aside of the rest
  uint64_t seen_ = 0;        // bytes that were here when it was looked at last
  loop::Clock::time_point moved_at_;
  bool given_up_ = false;
  bool posted_ = false;
  std::list<Upload*>::iterator place_;  // in Receiving::large_, from kReserved on
  // Written by its loop only.
  std::atomic<uint64_t> received_{0};
};

// Safe from any thread.
class Receiving {
 public:
  // What a window grows by at least: for a tensor of 1 MiB, and what stands around it, at once.
  static constexpr uint64_t kStep = (1 << 20) + (64 << 10);

  // `window`: the most that a stream may send unasked. When `max_waiting` wait for room, a large
  // message is let in only if all of it has room. REQUIRES: budget_bytes >= 2 * window.
  // Of first windows, and of the rest, the last quarter is never one peer's. While others wait, an
  // upload has to move at `min_rate` bytes a second, else it asks for no more.
  Receiving(uint64_t budget_bytes, uint64_t window, int64_t max_waiting,
            uint64_t min_rate = 32 << 10);

  // The largest message that can be let in.
  uint64_t largest() const { return large_budget_; }
  uint64_t window() const { return window_; }

  enum class Begun {
    kRefused,   // there is no room even for its first bytes
    kFirst,     // its first window has room
    kReserved,  // all of it has
  };
  // A message of `total` bytes begins. REQUIRES: `upload` holds nothing; total is at most
  // largest(); called by the thread that leads `loop`.
  Begun Begin(Upload& upload, uint64_t total, uint64_t peer, loop::Loop& loop);

  // What Extend says: how many bytes of the message the peer may send, and whether all of it has
  // its place.
  struct Room {
    uint64_t granted;
    bool reserved;
  };
  // Asks for room for more than the first window, given that `received` bytes are here. Never less
  // than the time before. With all of them it does not stand any more, once it has its place. Where
  // it is not all that the message needs, ask again when `received` has come near to `granted`, or
  // when OnRoom says so.
  Room Extend(Upload& upload, uint64_t received);

  // Notes how much has come. No lock.
  static void Received(Upload& upload, uint64_t received) {
    upload.received_.store(received, std::memory_order_relaxed);
  }

  // Gives everything back. Does nothing when it holds nothing.
  void Release(Upload& upload);
  // Whether the loop is about to tell it something, so that it must live until then.
  bool Told(const Upload& upload) const;

  // Sets memory aside for bytes that came early, of what first windows have. False: there is none.
  bool TakeFirst(uint64_t bytes, uint64_t peer);
  void GiveFirst(uint64_t bytes, uint64_t peer);

  // Looks at who does not move. Call it a few times a second.
  void Look(loop::Clock::time_point now);

  uint64_t held_bytes() const;
  int64_t waiting() const;
  uint64_t given_up() const;

 private:
  friend class Upload;
  // REQUIRES for all of these: mutex_ held.
  bool Reserve(Upload& upload);
  bool WithinShare(const Upload& upload) const;
  Upload* Next() const;
  void SetFirst(Upload& upload, uint64_t bytes);
  void SetLarge(Upload& upload, uint64_t bytes);
  bool GrantWaiting();
  void Stop(Upload& upload);
  void GiveUpOne();
  static void Tell(Upload& upload);

  const uint64_t window_;
  const int64_t max_waiting_;
  const uint64_t first_budget_;
  const uint64_t large_budget_;
  const uint64_t min_rate_;
  mutable std::mutex mutex_;
  loop::FairQueue queue_;
  std::list<Upload*> large_;  // all that are or were reserved
  uint64_t first_held_ = 0;
  uint64_t large_held_ = 0;
  uint64_t given_up_ = 0;
  bool refused_ = false;  // one that could not wait, since the last look
  loop::PeerShares first_shares_;
  loop::PeerShares large_shares_;
  loop::PeerShares waiting_shares_;  // of the places in the queue
};

}  // namespace quantd::admission

#endif  // QUANTD_SERVER_ADMISSION_RECEIVING_H_
