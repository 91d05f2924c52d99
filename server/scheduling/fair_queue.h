// A queue in which peers take turns, by what they have been given so far. The entries of one peer
// are first come, first served; optionally a short entry passes a much longer one, which can be
// passed by a limited number of entries, and an entry is given at most a turn at a time. So a peer
// with many requests waits behind itself.
//
//   struct Waiting : FairQueue::Entry { ... };
//   queue.Push(waiting, peer, cost);
//   while (FairQueue::Entry* next = queue.First()) { ...; queue.Remove(*next, true); }
//
// Start-time fair queueing: a peer's clock advances by the cost of what it is given. The peer whose
// clock is lowest is next; of two equal ones, the one that came first. A peer that comes (back)
// starts at the clock of the last one served. A clock that is ahead of that is kept: a peer that
// always asks for one thing at a time is not in the queue when it gets it, and would always be
// next.
#ifndef QUANTD_SERVER_SCHEDULING_FAIR_QUEUE_H_
#define QUANTD_SERVER_SCHEDULING_FAIR_QUEUE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

namespace quantd::scheduling {

// For one thread at a time.
class FairQueue {
 private:
  struct Line;

 public:
  // Intrusive. REQUIRES: not in the queue when it is destroyed.
  class Entry {
   public:
    bool queued() const { return line_ != nullptr; }
    uint64_t cost() const { return cost_; }

   private:
    friend class FairQueue;
    Line* line_ = nullptr;
    Entry* previous_ = nullptr;
    Entry* next_ = nullptr;
    uint64_t cost_ = 0;
    int passed_ = 0;
  };

  // An entry that costs this many times as much as another is passed by it, at most this many
  // times.
  static constexpr uint64_t kMuchLonger = 4;
  static constexpr int kMostPassed = 16;

  // `turn`: the most cost that an entry is given before it is pushed again; short ones pass longer
  // ones. 0: entries are given all of their cost, in their order.
  explicit FairQueue(uint64_t turn = 0) : turn_cost_(turn) {}

  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }

  // `cost`: in bytes or nanoseconds, the same unit for all entries. `again`: the entry has had a
  // turn, and comes before its peer's other ones.
  void Push(Entry& entry, uint64_t peer, uint64_t cost, bool again = false) {
    Line& line = lines_.try_emplace(peer).first->second;
    entry.line_ = &line;
    entry.cost_ = std::max<uint64_t>(cost, 1);
    entry.passed_ = 0;
    const bool waits_already = line.last != nullptr;
    entry.previous_ = again ? nullptr : line.last;
    if (again) {
      LetShorterOnesPass(entry);
    } else if (turn_cost_ != 0) {
      PassLongerOnes(entry);
    }
    entry.next_ = entry.previous_ == nullptr ? line.first : entry.previous_->next_;
    (entry.previous_ == nullptr ? line.first : entry.previous_->next_) = &entry;
    (entry.next_ == nullptr ? line.last : entry.next_->previous_) = &entry;
    ++size_;
    if (waits_already) return;
    resting_.erase(&line);
    line.peer = peer;
    line.clock = std::max(line.clock, clock_);
    line.turn = ++turn_;
    order_.insert(&line);
  }

  // The next entry, or nullptr. It stays in the queue.
  Entry* First() const { return order_.empty() ? nullptr : (*order_.begin())->first; }

  // The next entry for which `may(entry)` is true. Only the first entry of each peer is asked.
  template <typename May>
  Entry* FirstOf(May may) const {
    for (const Line* line : order_) {
      if (may(*line->first)) return line->first;
    }
    return nullptr;
  }

  // Gives an entry a part, of this cost, of what it waits for: its peer's clock advances, and the
  // entry stays in its place.
  void Charge(Entry& entry, uint64_t cost) {
    Line& line = *entry.line_;
    order_.erase(&line);
    Serve(line, cost);
    order_.insert(&line);
    Forget();
  }

  // Removes an entry. `served`: it got what it waited for, so its peer's clock advances.
  void Remove(Entry& entry, bool served) {
    Line& line = *std::exchange(entry.line_, nullptr);
    order_.erase(&line);
    (entry.previous_ == nullptr ? line.first : entry.previous_->next_) = entry.next_;
    (entry.next_ == nullptr ? line.last : entry.next_->previous_) = entry.previous_;
    --size_;
    if (served) Serve(line, entry.cost_);
    (line.first != nullptr ? order_ : resting_).insert(&line);
    Forget();
  }

 private:
  struct Line {
    uint64_t peer = 0;
    uint64_t clock = 0;
    uint64_t turn = 0;  // decides between two equal clocks
    Entry* first = nullptr;
    Entry* last = nullptr;
  };
  struct Earlier {
    bool operator()(const Line* a, const Line* b) const {
      return a->clock != b->clock ? a->clock < b->clock : a->turn < b->turn;
    }
  };
  using Order = std::set<Line*, Earlier>;

  // The most clocks of peers without an entry that are kept.
  static constexpr size_t kMostResting = 4096;

  static bool Passes(const Entry& entry, Entry& longer) {
    if (longer.cost_ / kMuchLonger < entry.cost_ || longer.passed_ == kMostPassed) return false;
    ++longer.passed_;
    return true;
  }
  static void PassLongerOnes(Entry& entry) {
    while (entry.previous_ != nullptr && Passes(entry, *entry.previous_)) {
      entry.previous_ = entry.previous_->previous_;
    }
  }
  static void LetShorterOnesPass(Entry& entry) {
    for (Entry* other = entry.line_->first; other != nullptr && Passes(*other, entry);
         other = other->next_) {
      entry.previous_ = other;
    }
  }

  // REQUIRES: the line is in neither set.
  void Serve(Line& line, uint64_t cost) {
    clock_ = std::max(clock_, line.clock);
    line.clock += turn_cost_ == 0 ? cost : std::min(cost, turn_cost_);
    line.turn = ++turn_;
  }

  // Forgets clocks that no longer matter: the others have caught up, or no entry waits.
  void Forget() {
    while (!resting_.empty()) {
      Line* const first = *resting_.begin();
      if (size_ != 0 && first->clock > clock_ && resting_.size() <= kMostResting) return;
      resting_.erase(resting_.begin());
      lines_.erase(first->peer);
    }
  }

  const uint64_t turn_cost_;
  std::map<uint64_t, Line> lines_;
  Order order_;    // peers that wait, by clock
  Order resting_;  // peers that do not wait and whose clocks are ahead
  uint64_t turn_ = 0;
  uint64_t clock_ = 0;  // of the last peer served
  size_t size_ = 0;
};

}  // namespace quantd::scheduling

#endif  // QUANTD_SERVER_SCHEDULING_FAIR_QUEUE_H_
