// A bounded queue that any thread fills and one thread empties.
//
//   Mailbox<std::string> lines(1024);
//   std::thread thread([&] { while (auto line = lines.Take()) Write(*line); });
//   lines.Push("...");
//   lines.Close();
#ifndef QUANTD_SERVER_MAILBOX_MAILBOX_H_
#define QUANTD_SERVER_MAILBOX_MAILBOX_H_

#include <array>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

namespace quantd {

// Safe from any thread. What lies in an earlier lane is taken before what lies in later ones.
template <typename Item, size_t kLanes = 1>
class Mailbox {
 public:
  // So many items may wait in each lane.
  explicit Mailbox(size_t most) : most_(most) {}

  // False: the lane is full, and the item is gone.
  bool Push(Item item, size_t lane = 0) {
    const std::lock_guard lock(mutex_);
    if (lanes_[lane].size() >= most_) return false;
    Add(std::move(item), lane);
    return true;
  }
  // When the lane is full, its oldest item goes: then it returns true.
  bool PushOver(Item item, size_t lane = 0) {
    const std::lock_guard lock(mutex_);
    Add(std::move(item), lane);
    const bool is_full = lanes_[lane].size() > most_;
    if (is_full) lanes_[lane].pop_front();
    return is_full;
  }

  // Waits for the next item. Unset: the mailbox is closed, whatever is still in it.
  std::optional<Item> Take() {
    std::unique_lock lock(mutex_);
    for (;;) {
      if (closed_) return std::nullopt;
      for (std::deque<Item>& lane : lanes_) {
        if (lane.empty()) continue;
        std::optional<Item> item = std::move(lane.front());
        lane.pop_front();
        return item;
      }
      changed_.wait(lock);
    }
  }
  void Close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }

 private:
  void Add(Item item, size_t lane) {
    lanes_[lane].push_back(std::move(item));
    changed_.notify_one();
  }

  const size_t most_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::array<std::deque<Item>, kLanes> lanes_;
  bool closed_ = false;
};

}  // namespace quantd

#endif  // QUANTD_SERVER_MAILBOX_MAILBOX_H_
