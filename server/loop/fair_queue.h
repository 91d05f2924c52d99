// Who waits, and who is next: peers take turns, by what they have been given so far, and each
// peer's own are first come, first served. So a peer with many requests waits behind itself.
//
//   struct Waiting : FairQueue::Entry { ... };
//   queue.Push(waiting, peer, cost);
//   while (FairQueue::Entry* next = queue.First()) { ...; queue.Remove(*next, true); }
//
// Start-time fair queueing: a peer's clock goes on by the cost of what it is given; the peer whose
// clock shows the least is next; one that comes (back) starts where the last one served was.
#ifndef QUANTD_SERVER_LOOP_FAIR_QUEUE_H_
#define QUANTD_SERVER_LOOP_FAIR_QUEUE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

namespace quantd::loop {

// Not safe from two threads at a time.
class FairQueue {
 private:
  struct Line;

 public:
  // Intrusive. REQUIRES: not queued when it is destroyed.
  class Entry {
   public:
    bool queued() const { return line_ != nullptr; }

   private:
    friend class FairQueue;
    Line* line_ = nullptr;
    Entry* previous_ = nullptr;
    Entry* next_ = nullptr;
    uint64_t cost_ = 0;
  };

  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }

  // `cost`: bytes or nanoseconds, the same unit for all.
  void Push(Entry& entry, uint64_t peer, uint64_t cost) {
    const auto [place, is_new] = lines_.try_emplace(peer);
    Line& line = place->second;
    if (is_new) line.peer = peer;
    entry.line_ = &line;
    entry.cost_ = std::max<uint64_t>(cost, 1);
    entry.previous_ = line.last;
    entry.next_ = nullptr;
    (line.last == nullptr ? line.first : line.last->next_) = &entry;
    line.last = &entry;
    if (line.first == &entry) {
      line.clock = clock_;
      order_.insert({line.clock, &line});
    }
    ++size_;
  }

  // The next one, nullptr when there is none. It stays in the queue.
  Entry* First() const { return order_.empty() ? nullptr : order_.begin()->second->first; }

  // Takes an entry out; `served`: it got what it waited for, so its peer's clock goes on.
  void Remove(Entry& entry, bool served) {
    Line& line = *std::exchange(entry.line_, nullptr);
    order_.erase({line.clock, &line});
    (entry.previous_ == nullptr ? line.first : entry.previous_->next_) = entry.next_;
    (entry.next_ == nullptr ? line.last : entry.next_->previous_) = entry.previous_;
    --size_;
    if (served) {
      clock_ = std::max(clock_, line.clock);
      line.clock += entry.cost_;
    }
    if (line.first != nullptr) {
      order_.insert({line.clock, &line});
    } else {
      lines_.erase(line.peer);
    }
  }

 private:
  struct Line {
    uint64_t peer = 0;
    uint64_t clock = 0;
    Entry* first = nullptr;
    Entry* last = nullptr;
  };

  std::map<uint64_t, Line> lines_;              // of those who wait
  std::set<std::pair<uint64_t, Line*>> order_;  // by clock
  uint64_t clock_ = 0;                          // of the last one served
  size_t size_ = 0;
};

}  // namespace quantd::loop

#endif  // QUANTD_SERVER_LOOP_FAIR_QUEUE_H_
