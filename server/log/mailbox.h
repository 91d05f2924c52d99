// A bounded queue that any thread fills and one thread empties.
//
//   Mailbox<std::string> lines(1024);
//   std::thread thread([&] { while (auto line = lines.Take()) Write(*line); });
//   lines.PushOver("...");
//   lines.Close();
#ifndef QUANTD_SERVER_LOG_MAILBOX_H_
#define QUANTD_SERVER_LOG_MAILBOX_H_

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

namespace quantd {

// Thread-safe.
template <typename Item>
class Mailbox {
 public:
  // At most `most` items may wait.
  explicit Mailbox(size_t most) : most_(most) {}

  // If the mailbox is full, drops the oldest item and returns true.
  bool PushOver(Item item) {
    const std::lock_guard lock(mutex_);
    items_.push_back(std::move(item));
    changed_.notify_one();
    const bool is_full = items_.size() > most_;
    if (is_full) items_.pop_front();
    return is_full;
  }

  // Waits for the next item. Returns nullopt once the mailbox is closed, even if items are left.
  std::optional<Item> Take() {
    std::unique_lock lock(mutex_);
    for (;;) {
      if (closed_) return std::nullopt;
      if (!items_.empty()) {
        std::optional<Item> item = std::move(items_.front());
        items_.pop_front();
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
  const size_t most_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> items_;
  bool closed_ = false;
};

}  // namespace quantd

#endif  // QUANTD_SERVER_LOG_MAILBOX_H_
