// The rule for everything that peers share: calls, connections, memory, places in queues.
//
// A table has room for so much. A peer may take more as long as it then has at most three times as
// much as was free: one peer alone gets three quarters, and each one leaves a quarter of what it
// found for the next, whatever it does with the rest.
//
// A place belongs to a call that moves: if there is no room, a newcomer takes the place of the call
// that has stood still for longest, of the peer that has the most, or of its own peer, if that has
// its three quarters. Standing still means: no byte in either direction and no turn of computing
// for `stall`, whatever the call has done before. If none does, a connection that has little takes
// a place of the connection of the same peer that has the most and at least four times as much.
//
//   class ServerCall : private Holder { void OnDisplaced() override { ...end the call... } };
//   PlaceTable calls(4096, seconds(5));
//   Place place;
//   if (!calls.Take(place, holder, 1)) ...   // full, and all of it moves
//   calls.Give(place);
#ifndef QUANTD_SERVER_SCHEDULING_PLACES_H_
#define QUANTD_SERVER_SCHEDULING_PLACES_H_

#include <algorithm>
#include <atomic>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <limits>
#include <mutex>
#include <unordered_map>

#include "server/loop/loop.h"
#include "server/loop/posted.h"

namespace quantd::scheduling {

// How much one peer may have of a table with room for `most`: all of it if a quarter is less than
// one.
template <std::integral Integer>
constexpr Integer ShareOfOnePeer(Integer most) {
  return most - most / 4;
}

// Whether a peer that has `has` stays within its share of a table with `amount` more: it then has
// at most three quarters of it, and at most three times what was free, or what it `had`. A peer
// that has nothing always does, because something larger than a share must be possible.
constexpr bool WithinShare(uint64_t most, uint64_t free, uint64_t has, uint64_t amount,
                           uint64_t had = 0) {
  const uint64_t share = std::min(ShareOfOnePeer(most), std::max(3 * free, had));
  return has == 0 || (amount <= share && has <= share - amount);
}

// What each peer has of one table, in any unit. For one thread at a time.
class PeerShares {
 public:
  explicit PeerShares(uint64_t most) : most_(most) {}

  bool Within(uint64_t peer, uint64_t amount) const {
    return WithinShare(most_, most_ - std::min(most_, sum_), Of(peer), amount);
  }
  // What all peers have; may exceed the table.
  uint64_t sum() const { return sum_; }
  uint64_t Of(uint64_t peer) const {
    const auto found = taken_.find(peer);
    return found == taken_.end() ? 0 : found->second;
  }
  void Take(uint64_t peer, uint64_t amount) {
    if (amount != 0) taken_[peer] += amount;
    sum_ += amount;
  }
  // REQUIRES: the peer has at least `amount`.
  void Give(uint64_t peer, uint64_t amount) {
    if (amount == 0) return;
    sum_ -= amount;
    const auto found = taken_.find(peer);
    found->second -= amount;
    if (found->second == 0) taken_.erase(found);
  }

 private:
  const uint64_t most_;
  uint64_t sum_ = 0;
  std::unordered_map<uint64_t, uint64_t> taken_;
};

// Measures whether something is fast enough. Bytes earn the time that they take at the least rate;
// nothing is saved for later.
class Pace {
 public:
  using Time = loop::Clock::time_point;

  // What `bytes` have earned at `rate` bytes a second, on top of `before`.
  static Time After(Time before, Time now, uint64_t bytes, uint64_t rate) {
    const std::chrono::duration<double> earned(static_cast<double>(bytes) /
                                               static_cast<double>(rate));
    return std::min(before + std::chrono::duration_cast<loop::Clock::duration>(earned), now);
  }

  void Start(Time now) { earned_until_ = now; }
  void Moved(Time now, uint64_t bytes, uint64_t rate) {
    earned_until_ = After(earned_until_, now, bytes, rate);
  }
  // Whether it has fallen behind by more than `patience`.
  bool TooSlow(Time now, loop::Clock::duration patience) const {
    return now - earned_until_ > patience;
  }

 private:
  Time earned_until_;
};

class PlaceTable;

// What holds places: a call. Belongs to a loop.
class Holder : private loop::Posted {
 public:
  uint64_t peer() const { return peer_; }
  // Its connection, among those of the peer; 0: it is none of several.
  uint64_t group() const { return group_; }

  // The next five are safe from any thread.

  // It moved.
  void Moved(loop::Clock::time_point now);
  // Bytes moved. At less than `rate` bytes a second it falls behind, until it counts as still.
  void Moved(loop::Clock::time_point now, uint64_t bytes, uint64_t rate);
  // It waits for a core, or computes: this is the server's time. Until Idle.
  void Busy() { still_since_.store(kBusy, std::memory_order_relaxed); }
  void Idle(loop::Clock::time_point now) {
    still_since_.store(now.time_since_epoch().count(), std::memory_order_relaxed);
  }
  loop::Clock::time_point still_since() const {
    return loop::Clock::time_point(
        loop::Clock::duration(still_since_.load(std::memory_order_relaxed)));
  }

 protected:
  Holder(loop::Loop& loop, uint64_t peer, loop::Clock::time_point now, uint64_t group = 0)
      : loop_(loop), peer_(peer), group_(group) {
    Idle(now);
  }
  ~Holder() = default;  // REQUIRES: holds no place; !displaced()

  // Its place, in any table, is another's: it gives up all that it holds. Called once, on its loop.
  virtual void OnDisplaced() = 0;
  // Whether OnDisplaced is about to be called. Does not become true if it holds no place.
  bool displaced() const { return posted_.load(std::memory_order_acquire); }

 private:
  friend class PlaceTable;
  static constexpr loop::Clock::rep kBusy = std::numeric_limits<loop::Clock::rep>::max();
  void Run() override;
  void Displace();

  loop::Loop& loop_;
  const uint64_t peer_;
  const uint64_t group_;
  std::atomic<loop::Clock::rep> still_since_;
  std::atomic<bool> told_{false};
  std::atomic<bool> posted_{false};
};

// A holder's part of a table. For one thread at a time.
class Place {
 public:
  Place() = default;
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  ~Place() { Give(); }

  // Gives it back, if it is not empty.
  void Give();
  uint64_t amount() const { return amount_; }
  // For OnDisplaced: whether this is the place that is another's.
  bool lost() const;

 private:
  friend class PlaceTable;
  // What a connection has.
  struct Group {
    uint64_t amount = 0;
    Place* first = nullptr;
  };
  struct OfPeer {
    uint64_t amount = 0;
    loop::Clock::time_point still_since;  // none of its calls has stood still for longer
    std::unordered_map<uint64_t, Group> groups;
  };

  PlaceTable* table_ = nullptr;
  Holder* holder_ = nullptr;
  Group* group_ = nullptr;  // null: it is leaving
  OfPeer* of_peer_ = nullptr;
  uint64_t amount_ = 0;
  Place* previous_ = nullptr;  // in its group
  Place* next_ = nullptr;
};

// Thread-safe. Must outlive its places.
class PlaceTable {
 public:
  // What a newcomer gets if none has stood still for long.
  enum class Otherwise : uint8_t {
    kNothing,     // it can wait, unless all have stood still for half a second
    kOwn,         // a place of another connection of its peer, if that has far more
    kOfAnyOther,  // what has a place is easily made again: a place of a peer that has more
  };
  PlaceTable(uint64_t most, loop::Clock::duration stall, Otherwise otherwise = Otherwise::kOwn)
      : most_(most), stall_(stall), otherwise_(otherwise) {}

  // Takes room for `amount` in any unit. If there is too little, others are displaced; what they
  // have counts as free, as long as it is little. False: there is no room. A peer that has nothing
  // may have more than its share. A place that has some of this table already gets more.
  bool Take(Place& place, Holder& holder, uint64_t amount);
  // Reduces a place to `amount`. Does nothing if it has no more than that.
  void Shrink(Place& place, uint64_t amount);
  // Does nothing if the place is empty.
  void Give(Place& place);

  // Whether the peer has at most three quarters with `amount` more, and whether it leaves others
  // their part of what is free.
  bool Within(uint64_t peer, uint64_t amount) const;
  bool MayTake(uint64_t peer, uint64_t amount) const;
  uint64_t Of(uint64_t peer) const;
  // Including what is leaving.
  uint64_t taken() const;
  uint64_t most() const { return most_; }
  // How many have been displaced.
  uint64_t displaced() const;

 private:
  friend class Place;
  using OfPeer = Place::OfPeer;
  using Group = Place::Group;
  // All of these require that mutex_ is held.
  uint64_t Has(uint64_t peer) const;
  // Whether its connection has nothing.
  bool IsNew(const Holder& holder) const;
  bool WithinThreeQuarters(uint64_t peer, uint64_t amount) const {
    return WithinShare(most_, most_, Has(peer), amount);
  }
  // Whether there is room, also for a peer that gets no more than it `had`.
  bool Fits(uint64_t peer, uint64_t amount, uint64_t had) const {
    const uint64_t free = most_ - taken_;
    return amount <= free && WithinShare(most_, free, Has(peer), amount, had);
  }
  static Place* Stillest(const Group& group);
  static Place* Stillest(OfPeer& of_peer, loop::Clock::time_point since);
  Place* StillestOfAll(uint64_t peer, uint64_t amount, loop::Clock::time_point now);
  Place* OfLargestGroup(const Holder& holder, uint64_t amount, loop::Clock::time_point now);
  // Whether all have stood still since `since` or before.
  bool AllStill(loop::Clock::time_point since) const;
  void Displace(Place& place);
  void Add(Place& place, Holder& holder, uint64_t amount);
  void Count(const Place& place, int64_t by);
  void Unlink(Place& place);

  const uint64_t most_;
  const loop::Clock::duration stall_;
  const Otherwise otherwise_;
  mutable std::mutex mutex_;
  std::unordered_map<uint64_t, OfPeer> peers_;
  uint64_t taken_ = 0;    // without what is leaving
  uint64_t leaving_ = 0;  // of calls that were displaced, and have not given it up yet
  uint64_t displaced_ = 0;
};

}  // namespace quantd::scheduling

#endif  // QUANTD_SERVER_SCHEDULING_PLACES_H_
