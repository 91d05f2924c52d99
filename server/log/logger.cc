// See logger.h.
#include "server/log/logger.h"

#include <poll.h>
#include <spdlog/async_logger.h>
#include <spdlog/details/thread_pool.h>
#include <spdlog/formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <thread>
#include <utility>

#include "absl/time/clock.h"
#include "server/log/format.h"

namespace quantd::log {
namespace {

constexpr int kPollMilliseconds = 50;

// Lines are made by whoever logs: they come as they are.
class AsItIs final : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& line, spdlog::memory_buf_t& out) override {
    out.append(line.payload.begin(), line.payload.end());
  }
  std::unique_ptr<spdlog::formatter> clone() const override { return std::make_unique<AsItIs>(); }
};

// Only the pool's thread writes. It waits until the descriptor takes something, so that it sees in
// between that the log ends; what a pipe then takes is a page at least, and no line is longer.
class DescriptorSink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  explicit DescriptorSink(int descriptor) : descriptor_(descriptor) {}

  std::atomic<uint64_t> written{0};
  std::atomic<uint64_t> failed{0};
  std::atomic<bool> closing{false};  // nobody waits for a reader any more
  // Dropped before they came here; set before the first line.
  std::function<uint64_t()> dropped;
  std::function<std::string(uint64_t lost)> lost_line;

 private:
  void sink_it_(const spdlog::details::log_msg& line) override {
    TellLost();
    if (WriteAll({line.payload.data(), line.payload.size()})) {
      written.fetch_add(1, std::memory_order_relaxed);
    } else {
      failed.fetch_add(1, std::memory_order_relaxed);
    }
  }
  void flush_() override {}

  // A reader that comes back is told how much it has missed.
  void TellLost() {
    const uint64_t lost = dropped() + failed.load(std::memory_order_relaxed);
    if (lost > told_ && WriteAll(lost_line(lost - told_))) told_ = lost;
  }

  bool WriteAll(absl::string_view bytes) {
    while (!bytes.empty()) {
      if (!WaitUntilWritable()) return false;
      const ssize_t wrote = write(descriptor_, bytes.data(), bytes.size());
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
      pollfd polled = {descriptor_, POLLOUT, 0};
      const int ready = poll(&polled, 1, closing.load() ? 0 : kPollMilliseconds);
      // An error, too, is the write's to report.
      if (ready > 0 || (ready < 0 && errno != EINTR)) return true;
      if (closing.load()) return false;
    }
  }

  const int descriptor_;
  uint64_t told_ = 0;
};

}  // namespace

struct Logger::Parts {
  Parts(int descriptor, Style line_style)
      : style(line_style),
        sink(std::make_shared<DescriptorSink>(descriptor)),
        pool(std::make_shared<spdlog::details::thread_pool>(kMostWaiting, 1)),
        logger(std::make_shared<spdlog::async_logger>(
            "quantd", sink, pool, spdlog::async_overflow_policy::overrun_oldest)) {
    sink->dropped = [this] { return pool->overrun_counter(); };
    sink->lost_line = [this](uint64_t lost) {
      return Line(Level::kWarn, "log lines were lost", {{"lines", lost}});
    };
    logger->set_level(spdlog::level::trace);
    logger->set_formatter(std::make_unique<AsItIs>());
    // What spdlog can't take, it counts as lost instead of writing to stderr by itself.
    logger->set_error_handler([this](const std::string&) { sink->failed.fetch_add(1); });
  }

  std::string Line(Level level, absl::string_view event, const Fields& fields) const {
    std::string line = FormatLine(style, absl::Now(), level, event, fields);
    line.push_back('\n');
    return line;
  }

  const Style style;
  const std::shared_ptr<DescriptorSink> sink;
  std::atomic<uint64_t> sent{0};
  std::shared_ptr<spdlog::details::thread_pool> pool;
  std::shared_ptr<spdlog::async_logger> logger;
};

Logger::Logger(int descriptor, Format format)
    : parts_(std::make_shared<Parts>(descriptor, StyleFor(format, descriptor))) {}

Logger::~Logger() = default;

void Logger::Write(Level level, absl::string_view event, const Fields& fields) {
  const std::string line = parts_->Line(level, event, fields);
  parts_->sent.fetch_add(1, std::memory_order_relaxed);
  parts_->logger->log(spdlog::level::info, spdlog::string_view_t(line.data(), line.size()));
}

bool Logger::Flush(std::chrono::milliseconds most) {
  const auto end = std::chrono::steady_clock::now() + most;
  while (written() + failed() + dropped() < parts_->sent.load()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

bool Logger::idle() const { return written() + failed() >= parts_->sent.load(); }

bool Logger::Close(std::chrono::milliseconds most) {
  if (Flush(most)) return true;
  parts_->sink->closing.store(true);
  if (Flush(std::chrono::milliseconds(4 * kPollMilliseconds))) return true;
  // Ending the pool would wait for its thread. Reachable for ever, so it is no leak.
  static auto* const left_behind = new std::vector<std::shared_ptr<Parts>>;
  left_behind->push_back(parts_);
  return false;
}

uint64_t Logger::written() const { return parts_->sink->written.load(std::memory_order_relaxed); }
uint64_t Logger::failed() const { return parts_->sink->failed.load(std::memory_order_relaxed); }
uint64_t Logger::dropped() const { return parts_->pool->overrun_counter(); }

}  // namespace quantd::log
