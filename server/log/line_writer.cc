#include "server/log/line_writer.h"

#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <new>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/string_view.h"

namespace quantd::log {
namespace {

constexpr int kPollMilliseconds = 50;

// A bounded queue that any thread fills and one thread empties.
class Mailbox {
 public:
  // At most `most` lines may wait.
  explicit Mailbox(size_t most) : most_(most) {}

  // If the mailbox is full, drops the oldest line and returns true.
  bool PushOver(std::string line) {
    const std::lock_guard lock(mutex_);
    lines_.push_back(std::move(line));
    changed_.notify_one();
    const bool is_full = lines_.size() > most_;
    if (is_full) lines_.pop_front();
    return is_full;
  }
  // Waits for the next line. Returns nullopt once the mailbox is closed, even if lines are left.
  std::optional<std::string> Take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return closed_ || !lines_.empty(); });
    if (closed_) return std::nullopt;
    std::optional<std::string> line = std::move(lines_.front());
    lines_.pop_front();
    return line;
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
  std::deque<std::string> lines_;
  bool closed_ = false;
};

}  // namespace

// Shared with the thread, which may be stuck in a write when the writer is destroyed.
struct LineWriter::Parts {
  // The thread's loop. It waits until the descriptor is writable, so that it notices the end
  // meanwhile. A writable pipe takes at least a page, and no line is longer.
  void Run() {
    while (const std::optional<std::string> line = lines.Take()) {
      TellLost();
      std::atomic<uint64_t>& count = WriteLine(*line) ? written : failed;
      count.fetch_add(1, std::memory_order_relaxed);
    }
  }

  void TellLost() {
    const uint64_t lost =
        dropped.load(std::memory_order_relaxed) + failed.load(std::memory_order_relaxed);
    if (lost == told || lost_line == nullptr) return;
    try {
      if (WriteLine(lost_line(lost - told))) told = lost;
    } catch (const std::bad_alloc&) {  // told with the next line instead
    }
  }

  // After a line of which only a part was written, a full disk's for example, the next one begins
  // on a line of its own.
  bool WriteLine(absl::string_view line) {
    if (torn && !WriteAll("\n")) return false;
    torn = false;
    return WriteAll(line);
  }

  bool WriteAll(absl::string_view bytes) {
    while (!bytes.empty()) {
      if (!WaitUntilWritable()) return false;
      const ssize_t wrote = write(descriptor, bytes.data(), bytes.size());
      if (wrote >= 0) {
        bytes.remove_prefix(static_cast<size_t>(wrote));
        torn = !bytes.empty();
      } else if (errno != EINTR && errno != EAGAIN) {
        return false;
      }
    }
    return true;
  }

  bool WaitUntilWritable() const {
    for (;;) {
      pollfd polled = {descriptor, POLLOUT, 0};
      const int ready = poll(&polled, 1, closing.load() ? 0 : kPollMilliseconds);
      // The write reports errors, too.
      if (ready > 0 || (ready < 0 && errno != EINTR)) return true;
      if (closing.load()) return false;
    }
  }

  const int descriptor;
  const std::function<std::string(uint64_t lost)> lost_line;
  const std::shared_ptr<const void> owned;
  Mailbox lines;
  std::atomic<uint64_t> sent{0};
  std::atomic<uint64_t> written{0};
  std::atomic<uint64_t> dropped{0};  // to make room for other lines
  std::atomic<uint64_t> failed{0};
  std::atomic<bool> closing{false};  // no longer waits for the reader
  // Used by the thread.
  uint64_t told = 0;  // number of lost lines that were told
  bool torn = false;  // the last line has no end
};

LineWriter::LineWriter(int descriptor, size_t most,
                       std::function<std::string(uint64_t lost)> lost_line,
                       std::shared_ptr<const void> owned)
    : parts_(new Parts{descriptor, std::move(lost_line), std::move(owned), Mailbox(most)}) {
  std::thread([parts = parts_] { parts->Run(); }).detach();
}

LineWriter::~LineWriter() = default;

void LineWriter::Write(absl::FunctionRef<std::string()> make) {
  parts_->sent.fetch_add(1, std::memory_order_relaxed);
  try {
    if (parts_->lines.PushOver(make())) parts_->dropped.fetch_add(1, std::memory_order_relaxed);
  } catch (const std::bad_alloc&) {
    parts_->failed.fetch_add(1, std::memory_order_relaxed);
  }
}

bool LineWriter::Flush(std::chrono::milliseconds most) {
  const auto end = std::chrono::steady_clock::now() + most;
  while (!idle()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

bool LineWriter::idle() const { return written() + failed() + dropped() >= parts_->sent.load(); }

bool LineWriter::Close(std::chrono::milliseconds most) {
  bool done = Flush(most);
  if (!done) {
    parts_->closing.store(true);
    done = Flush(std::chrono::milliseconds(4 * kPollMilliseconds));
  }
  parts_->lines.Close();
  return done;
}

uint64_t LineWriter::written() const { return parts_->written.load(std::memory_order_relaxed); }
uint64_t LineWriter::failed() const { return parts_->failed.load(std::memory_order_relaxed); }
uint64_t LineWriter::dropped() const { return parts_->dropped.load(std::memory_order_relaxed); }

}  // namespace quantd::log
