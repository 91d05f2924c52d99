// The server's log: lines on stderr, from any thread. Logging never waits for the log's reader.
//
//   log::Start({.level = log::Level::kInfo, .format = log::Format::kJson});   // once, in main
//   log::Info("listening", {{"grpc", address}, {"pid", getpid()}});
//   static log::Repeated refused(log::Level::kWarn, "connection refused");
//   refused.Write([&] { return log::Fields{{"peer", peer}}; });               // at a bounded rate
//   log::Stop();
//
// A line is an event in a few fixed words, with fields for the details. Values may come from
// anybody: they are escaped and truncated when the line is made. Before Start and after Stop lines
// are discarded, also in the tests of other rooms.
#ifndef QUANTD_SERVER_LOG_LOG_H_
#define QUANTD_SERVER_LOG_LOG_H_

#include <atomic>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace quantd::log {

enum class Level : uint8_t { kDebug, kInfo, kWarn, kError, kNone };

// kAuto: text; with colours on a terminal, and with journal priorities instead of the time if
// systemd's journal reads it.
enum class Format : uint8_t { kAuto, kText, kJson };

// A part of a line: name=value, or "name": value.
struct Field {
  Field(absl::string_view field_name, absl::string_view text)
      : name(field_name), value(text), is_text(true) {}
  Field(absl::string_view field_name, const char* text)
      : Field(field_name, absl::string_view(text)) {}
  Field(absl::string_view field_name, const std::string& text)
      : Field(field_name, absl::string_view(text)) {}
  template <typename Number>
    requires(std::integral<Number> || std::floating_point<Number>)
  Field(absl::string_view field_name, Number number)
      : name(field_name), value(absl::StrCat(number)), is_text(false) {
    if constexpr (std::same_as<Number, bool>) value = number ? "true" : "false";
  }

  absl::string_view name;  // lower_snake_case, static storage
  std::string value;
  bool is_text;  // JSON quotes it
};
using Fields = std::vector<Field>;

struct Settings {
  Level level = Level::kInfo;
  Format format = Format::kAuto;
  int descriptor = 2;
};

// Counts of lines that were not written, since the process started.
struct Lost {
  uint64_t repeated = 0;  // left out by Repeated, which logs how many
  uint64_t full = 0;      // dropped, the oldest first, because the log's reader was too slow
  uint64_t failed = 0;    // could not be written: a full disk, a closed pipe
};

// Writes lines to the descriptor from now on. Call before other threads log, and again only after
// Stop.
void Start(const Settings& settings);
// Waits up to `most` until all lines so far are written. Call it before telling others that they
// can read them.
void Flush(std::chrono::milliseconds most = std::chrono::milliseconds(200));
// Whether all lines are written, as far as a signal handler can know; dropped lines count as
// waiting.
bool Idle();
// Writes the remaining lines, for at most `most`, and ends the log.
void Stop(std::chrono::milliseconds most = std::chrono::milliseconds(500));

// Whether lines of this level are written. A relaxed load; skips fields that are costly to make.
bool Enabled(Level level);
// `event`: a few fixed words in lower case. Never waits for the reader.
void Write(Level level, absl::string_view event, const Fields& fields = {});
inline void Info(absl::string_view event, const Fields& fields = {}) {
  Write(Level::kInfo, event, fields);
}
inline void Warn(absl::string_view event, const Fields& fields = {}) {
  Write(Level::kWarn, event, fields);
}
inline void Error(absl::string_view event, const Fields& fields = {}) {
  Write(Level::kError, event, fields);
}

// Lines that were written, and lines that were not, since the process started.
uint64_t Written();
Lost CountLost();

// For an event that others can cause as often as they like. Writes a fixed number of lines per ten
// seconds, then one that says how many more there were. It must outlive all logging; use static
// storage.
class Repeated {
 public:
  static constexpr std::chrono::seconds kWindow{10};

  Repeated(Level level, absl::string_view event, uint32_t lines = 10);
  ~Repeated();
  Repeated(const Repeated&) = delete;
  Repeated& operator=(const Repeated&) = delete;

  // Calls `fields`, which returns Fields, only if the line is written.
  template <typename Function>
  void Write(Function fields) {
    if (Enabled(level_) && Take(std::chrono::steady_clock::now())) {
      log::Write(level_, event_, fields());
    }
  }

  // Counts an event at time `now`. Returns false if its line is left out.
  bool Take(std::chrono::steady_clock::time_point now);
  // Logs "event, and 312 more like it" if lines were left out in a window that is over; `all`: in
  // any.
  void TellLeftOut(std::chrono::steady_clock::time_point now, bool all);

 private:
  const Level level_;
  const std::string event_;
  const uint32_t lines_;
  std::atomic<int64_t> window_{0};  // its start, in nanoseconds of the steady clock
  std::atomic<uint32_t> taken_{0};
  std::atomic<uint64_t> left_out_{0};
};

// Calls TellLeftOut of every Repeated. Call this about once a second; Stop calls it a last time.
void TellLeftOut();

}  // namespace quantd::log

#endif  // QUANTD_SERVER_LOG_LOG_H_
