// The format of a log line.
//
//   2026-11-22T19:54:25.123Z quantd: listening grpc=127.0.0.1:50051 pid=1
//   2026-11-22T19:54:25.123Z quantd: warn: call failed peer=ipv4:10.0.0.7:4711 code=INTERNAL
//   {"time":"2026-11-22T19:54:25.123Z","level":"warn","message":"call failed","peer":"ipv4:..."}
//
// In text, a level other than info stands before the event. A value with a space, a quote, a
// backslash or a byte that is not printable ASCII is quoted, with \" \\ and \x0a. In JSON non-ASCII
// is written as \u00e9, and invalid UTF-8 as \ufffd. So no line can move a terminal's cursor, begin
// another line or change the direction of text.
#ifndef QUANTD_SERVER_LOG_FORMAT_H_
#define QUANTD_SERVER_LOG_FORMAT_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/log/log.h"

namespace quantd::log {

// The longest line in bytes, with its end: what a pipe takes in one piece (PIPE_BUF).
inline constexpr size_t kMostLine = 4096;
// The longest value in bytes, before it is escaped. The rest is replaced by "...".
inline constexpr size_t kMostValue = 1024;

enum class Style : uint8_t { kText, kTerminal, kJournal, kJson };

// The style of `format` for this descriptor.
Style StyleFor(Format format, int descriptor);

// The line without its end. Fields that do not fit are left out, and the line says so.
std::string FormatLine(Style style, absl::Time time, Level level, absl::string_view event,
                       const Fields& fields);

// A string of JSON, in quotes, all ASCII. Invalid UTF-8 becomes \ufffd.
std::string JsonText(absl::string_view value);

}  // namespace quantd::log

#endif  // QUANTD_SERVER_LOG_FORMAT_H_
