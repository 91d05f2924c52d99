#include "server/log/logger.h"

#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <new>
#include <thread>
#include <utility>

#include "absl/time/clock.h"
#include "server/log/format.h"
#include "server/mailbox/mailbox.h"

namespace quantd::log {
namespace {

constexpr int kPollMilliseconds = 50;

}  // namespace

// Shared with the thread, which may be stuck in a write when the logger is destroyed.
struct Logger::Parts {
  Parts(int to, Style line_style) : descriptor(to), style(line_style) {}

  std::string Line(Level level, absl::string_view event, const Fields& fields) const {
    std::string line = FormatLine(style, absl::Now(), level, event, fields);
    line.push_back('\n');
    return line;
  }

  // The thread's loop. It waits until the descriptor is writable, so that it notices the end of the
  // log meanwhile. A writable pipe takes at least a page, and no line is longer.
  void Run() {
    while (const std::optional<std::string> line = lines.Take()) {
      TellLost();
      std::atomic<uint64_t>& count = WriteAll(*line) ? written : failed;
      count.fetch_add(1, std::memory_order_relaxed);
    }
  }

  // Logs how many lines the reader has missed.
  void TellLost() {
    const uint64_t lost =
        dropped.load(std::memory_order_relaxed) + failed.load(std::memory_order_relaxed);
    if (lost == told) return;
    try {
      if (WriteAll(Line(Level::kWarn, "log lines were lost", {{"lines", lost - told}})))
        told = lost;
    } catch (const std::bad_alloc&) {  // logged with the next line instead
    }
  }

  bool WriteAll(absl::string_view bytes) {
    while (!bytes.empty()) {
      if (!WaitUntilWritable()) return false;
      const ssize_t wrote = write(descriptor, bytes.data(), bytes.size());
      if (wrote >= 0) {
        bytes.remove_prefix(static_cast<size_t>(wrote));
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
  const Style style;
  Mailbox<std::string> lines{kMostWaiting};
  std::atomic<uint64_t> sent{0};
  std::atomic<uint64_t> written{0};
  std::atomic<uint64_t> dropped{0};  // to make room for other lines
  std::atomic<uint64_t> failed{0};
  std::atomic<bool> closing{false};  // the log no longer waits for its reader
  uint64_t told = 0;                 // number of lost lines that were logged; used by the thread
};

Logger::Logger(int descriptor, Format format)
    : parts_(std::make_shared<Parts>(descriptor, StyleFor(format, descriptor))) {
  std::thread([parts = parts_] { parts->Run(); }).detach();
}

Logger::~Logger() = default;

void Logger::Write(Level level, absl::string_view event, const Fields& fields) {
  parts_->sent.fetch_add(1, std::memory_order_relaxed);
  try {
    if (parts_->lines.PushOver(parts_->Line(level, event, fields))) {
      parts_->dropped.fetch_add(1, std::memory_order_relaxed);
    }
  } catch (const std::bad_alloc&) {
    parts_->failed.fetch_add(1, std::memory_order_relaxed);
  }
}

bool Logger::Flush(std::chrono::milliseconds most) {
  const auto end = std::chrono::steady_clock::now() + most;
  while (!idle()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

bool Logger::idle() const { return written() + failed() + dropped() >= parts_->sent.load(); }

bool Logger::Close(std::chrono::milliseconds most) {
  bool done = Flush(most);
  if (!done) {
    parts_->closing.store(true);
    done = Flush(std::chrono::milliseconds(4 * kPollMilliseconds));
  }
  parts_->lines.Close();
  return done;
}

uint64_t Logger::written() const { return parts_->written.load(std::memory_order_relaxed); }
uint64_t Logger::failed() const { return parts_->failed.load(std::memory_order_relaxed); }
uint64_t Logger::dropped() const { return parts_->dropped.load(std::memory_order_relaxed); }

}  // namespace quantd::log
