#include "server/log/log.h"

#include <memory>
#include <mutex>
#include <set>
#include <utility>

#include "absl/time/clock.h"
#include "server/log/format.h"
#include "server/log/line_writer.h"

namespace quantd::log {
namespace {

using Clock = std::chrono::steady_clock;

// Formats lines and writes them. Thread-safe, except for Close and the destructor.
class Logger : public LineWriter {
 public:
  // The most lines that wait: 1 MiB of memory.
  static constexpr size_t kMostWaiting = 1024;

  Logger(int descriptor, Format format) : Logger(descriptor, StyleFor(format, descriptor)) {}

  void Write(Level level, absl::string_view event, const Fields& fields) {
    LineWriter::Write([&] { return Line(style_, level, event, fields); });
  }

 private:
  Logger(int descriptor, Style style)
      : LineWriter(descriptor, kMostWaiting,
                   [style](uint64_t lost) {
                     return Line(style, Level::kWarn, "log lines were lost", {{"lines", lost}});
                   }),
        style_(style) {}

  static std::string Line(Style style, Level level, absl::string_view event, const Fields& fields) {
    return FormatLine(style, absl::Now(), level, event, fields) + "\n";
  }

  const Style style_;
};

std::atomic<Level> lowest{Level::kNone};  // the lowest level that is written
// Never destroyed while a thread may log: Stop leaves it in place, but admits no more callers.
std::atomic<Logger*> logger{nullptr};
std::atomic<uint64_t> left_out_in_all{0};

struct Registered {
  std::mutex mutex;
  std::set<Repeated*> all;
};
Registered& AllRepeated() {
  static auto* const registered = new Registered;
  return *registered;
}

void TellAll(bool all) {
  Registered& registered = AllRepeated();
  const std::lock_guard lock(registered.mutex);
  for (Repeated* const repeated : registered.all) repeated->TellLeftOut(Clock::now(), all);
}

int64_t ToNanoseconds(Clock::duration time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
}

}  // namespace

void Start(const Settings& settings) {
  delete logger.exchange(new Logger(settings.descriptor, settings.format));
  lowest.store(settings.level);
}

void Flush(std::chrono::milliseconds most) {
  if (Logger* const current = logger.load()) current->Flush(most);
}

bool Idle() {
  const Logger* const current = logger.load();
  return current == nullptr || current->idle();
}

void Stop(std::chrono::milliseconds most) {
  if (logger.load() == nullptr) return;
  TellAll(true);
  lowest.store(Level::kNone);
  logger.load()->Close(most);
}

bool Enabled(Level level) { return level >= lowest.load(std::memory_order_relaxed); }

void Write(Level level, absl::string_view event, const Fields& fields) {
  if (Enabled(level) && level != Level::kNone) logger.load()->Write(level, event, fields);
}

uint64_t Written() {
  const Logger* const current = logger.load();
  return current == nullptr ? 0 : current->written();
}

Lost CountLost() {
  Lost lost;
  lost.repeated = left_out_in_all.load(std::memory_order_relaxed);
  if (const Logger* const current = logger.load()) {
    lost.full = current->dropped();
    lost.failed = current->failed();
  }
  return lost;
}

Repeated::Repeated(Level level, absl::string_view event, uint32_t lines)
    : level_(level), event_(event), lines_(lines) {
  Registered& registered = AllRepeated();
  const std::lock_guard lock(registered.mutex);
  registered.all.insert(this);
}

Repeated::~Repeated() {
  Registered& registered = AllRepeated();
  const std::lock_guard lock(registered.mutex);
  registered.all.erase(this);
}

bool Repeated::Take(Clock::time_point now) {
  const int64_t time = ToNanoseconds(now.time_since_epoch());
  int64_t window = window_.load(std::memory_order_acquire);
  if (time - window >= ToNanoseconds(kWindow) || window == 0) {
    // One of the threads that see it begins the next window, after it has logged the last one's
    // count.
    TellLeftOut(now, false);
    if (window_.compare_exchange_strong(window, time)) taken_.store(0, std::memory_order_release);
  }
  // Threads between the two lines above may write a few lines too many or too few in a window.
  if (taken_.load(std::memory_order_relaxed) < lines_ &&
      taken_.fetch_add(1, std::memory_order_relaxed) < lines_) {
    return true;
  }
  left_out_.fetch_add(1, std::memory_order_relaxed);
  left_out_in_all.fetch_add(1, std::memory_order_relaxed);
  return false;
}

void Repeated::TellLeftOut(Clock::time_point now, bool all) {
  if (left_out_.load(std::memory_order_relaxed) == 0) return;
  const int64_t age =
      ToNanoseconds(now.time_since_epoch()) - window_.load(std::memory_order_acquire);
  if (!all && age < ToNanoseconds(kWindow)) return;
  const uint64_t count = left_out_.exchange(0, std::memory_order_relaxed);
  if (count == 0) return;
  log::Write(level_, absl::StrCat(event_, ", and ", count, " more like it"), {{"left_out", count}});
}

void TellLeftOut() { TellAll(false); }

}  // namespace quantd::log
