// Memory for messages that are being received. A message announces its length, so its memory is
// reserved before its bytes are let in. HTTP/2's flow control keeps out the bytes that have no
// memory yet, and only those: other streams of the connection continue.
//
// The bytes that a stream may send unasked (its first window) are let in or refused. For more, a
// message waits until there is room for all of it, so that started messages can end. Peers take
// turns. Small messages use the memory for first windows, others use it only if the rest has no
// room for them. Both parts are tables of places (scheduling/places.h): an upload that stands still
// loses its memory to one that waits. Two more rules keep uploads that progress from waiting for
// uploads that do not:
// - once half of the memory is taken, a message is given room only after its first window is
//   used up: a peer that has sent little has asked for nothing;
// - a window grows with the received bytes (1 MiB, then as much again as has been received).
#ifndef QUANTD_SERVER_ADMISSION_RECEIVING_H_
#define QUANTD_SERVER_ADMISSION_RECEIVING_H_

#include <chrono>
#include <cstdint>
#include <mutex>

#include "server/loop/loop.h"
#include "server/loop/posted.h"
#include "server/scheduling/fair_queue.h"
#include "server/scheduling/places.h"

namespace quantd::admission {

class Receiving;

// A message that is being received. Belongs to the loop of its connection; called back on that
// loop.
class Upload : private scheduling::FairQueue::Entry, private loop::Posted {
 public:
  bool holds() const { return holds_; }

 protected:
  Upload() = default;
  ~Upload() = default;  // REQUIRES: released, and no callback is pending (see Release)

  // The upload may continue: Receiving::Extend now grants more.
  virtual void OnRoom() = 0;
  // For Holder::OnDisplaced: whether the memory of the whole message is another's.
  bool lost() const { return whole_.lost(); }

 private:
  friend class Receiving;
  void Run() override;

  loop::Loop* loop_ = nullptr;
  Receiving* receiving_ = nullptr;
  scheduling::Holder* holder_ = nullptr;
  bool holds_ = false;  // used by its loop only
  // The following are guarded by Receiving's mutex.
  uint64_t total_ = 0;       // bytes of the message
  uint64_t granted_ = 0;     // bytes that the peer may send
  scheduling::Place first_;  // in the part for first windows
  scheduling::Place whole_;  // in the other part: room for the whole message
  bool posted_ = false;
};

// Thread-safe.
class Receiving {
 public:
  // The least that a window grows by: room for a tensor of 1 MiB and its fields at once.
  static constexpr uint64_t kStep = (1 << 20) + (64 << 10);
  // The most bytes of a small message.
  static constexpr uint64_t kSmall = 256 << 10;

  // `window`: the most that a stream may send unasked. Once `max_waiting` uploads wait for room, a
  // large message is let in only if there is room for all of it. REQUIRES: budget_bytes >= 2 *
  // window. One peer never gets the last quarter, neither of the memory for first windows nor of
  // the rest. An upload that stands still for `stall` loses its memory to others.
  Receiving(uint64_t budget_bytes, uint64_t window, int64_t max_waiting,
            std::chrono::milliseconds stall = std::chrono::seconds(5));

  // The largest message that can be let in.
  uint64_t largest() const { return large_.most(); }
  uint64_t window() const { return window_; }
  // The largest message that only needs a place in the memory for first windows.
  uint64_t small() const { return window_ < kSmall ? window_ : kSmall; }

  enum class Begun {
    kRefused,   // there is no room even for its first bytes
    kFirst,     // there is room for its first window
    kReserved,  // there is room for the whole message
  };
  // Begins a message of `total` bytes, of the call `holder`. REQUIRES: `upload` holds nothing;
  // total <= largest(); called by the thread that leads `loop`.
  Begun Begin(Upload& upload, uint64_t total, scheduling::Holder& holder, loop::Loop& loop);

  // The result of Extend: how many bytes of the message the peer may send, and whether there is
  // room for all of them.
  struct Room {
    uint64_t granted;
    bool reserved;
  };
  // Asks for more room than the first window, given that `received` bytes have arrived. The result
  // never decreases. While `granted` is less than the message, call again when `received`
  // approaches it, or when OnRoom is called.
  Room Extend(Upload& upload, uint64_t received);

  // Returns all room. Does nothing if the upload holds none.
  void Release(Upload& upload);
  // Whether a callback on the upload's loop is pending; the upload must live until then.
  bool Told(const Upload& upload) const;

  // Reserves room for bytes that came early, in the part for first windows. False: there is none.
  bool TakeFirst(scheduling::Place& place, scheduling::Holder& holder, uint64_t bytes) {
    return first_.Take(place, holder, bytes);
  }
  void GiveFirst(scheduling::Place& place) { first_.Give(place); }

  // Looks for uploads that stand still. Call this a few times a second.
  void Look();

  uint64_t held_bytes() const;
  int64_t waiting() const;

 private:
  friend class Upload;
  uint64_t Footprint(const Upload& upload) const;
  // All of these require that mutex_ is held.
  bool Reserve(Upload& upload);
  Upload* Next() const;
  void Leave(Upload& upload, bool served);
  void GrantWaiting();

  const uint64_t window_;
  const int64_t max_waiting_;
  scheduling::PlaceTable first_;  // memory for first windows
  scheduling::PlaceTable large_;  // and for whole messages
  mutable std::mutex mutex_;
  scheduling::FairQueue queue_;
  scheduling::PeerShares waiting_shares_;  // of the places in the queue
};

}  // namespace quantd::admission

#endif  // QUANTD_SERVER_ADMISSION_RECEIVING_H_
