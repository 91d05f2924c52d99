// Formats lines and writes them with a LineWriter.
#ifndef QUANTD_SERVER_LOG_LOGGER_H_
#define QUANTD_SERVER_LOG_LOGGER_H_

#include <cstddef>
#include <string>

#include "absl/time/clock.h"
#include "server/log/format.h"
#include "server/log/line_writer.h"
#include "server/log/log.h"

namespace quantd::log {

// Thread-safe, except for Close and the destructor.
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

}  // namespace quantd::log

#endif  // QUANTD_SERVER_LOG_LOGGER_H_
