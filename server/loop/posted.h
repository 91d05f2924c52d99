// Something that a loop runs once, soon. Intrusive, so posting uses no memory and can't fail.
#ifndef QUANTD_SERVER_LOOP_POSTED_H_
#define QUANTD_SERVER_LOOP_POSTED_H_

#include <atomic>
#include <utility>

namespace quantd::loop {

class Posted {
 protected:
  Posted() = default;
  ~Posted() = default;

 private:
  friend class Inbox;
  friend class Loop;
  friend class ReadyList;
  // The work. When Run returns, the object may be destroyed or posted again.
  virtual void Run() = 0;

  Posted* next_ = nullptr;
};

// First in, first out. For one thread.
class ReadyList {
 public:
  bool empty() const { return first_ == nullptr; }
  void Push(Posted& posted) {
    posted.next_ = nullptr;
    (first_ == nullptr ? first_ : last_->next_) = &posted;
    last_ = &posted;
  }
  void PushFirst(Posted& posted) {
    posted.next_ = first_;
    if (first_ == nullptr) last_ = &posted;
    first_ = &posted;
  }
  // REQUIRES: not empty.
  Posted& Pop() { return *std::exchange(first_, first_->next_); }

 private:
  Posted* first_ = nullptr;
  Posted* last_ = nullptr;
};

// Many threads push, one takes: a stack in one atomic word, reversed when it is taken.
class Inbox {
 public:
  void Push(Posted& posted) {
    Posted* head = head_.load(std::memory_order_relaxed);
    do {
      posted.next_ = head;
    } while (!head_.compare_exchange_weak(head, &posted, std::memory_order_seq_cst,
                                          std::memory_order_relaxed));
  }
  bool empty() const { return head_.load(std::memory_order_seq_cst) == nullptr; }
  // Moves everything, in order of arrival, to the end of `ready`.
  void MoveTo(ReadyList& ready) {
    Posted* newest = head_.exchange(nullptr, std::memory_order_seq_cst);
    Posted* oldest = nullptr;
    while (newest != nullptr) {
      Posted* const older = std::exchange(newest->next_, oldest);
      oldest = std::exchange(newest, older);
    }
    while (oldest != nullptr) {
      Posted* const next = oldest->next_;
      ready.Push(*oldest);
      oldest = next;
    }
  }

 private:
  std::atomic<Posted*> head_{nullptr};
};

}  // namespace quantd::loop

#endif  // QUANTD_SERVER_LOOP_POSTED_H_
