// How a line looks.
//
//   2026-11-22T19:54:25.123Z quantd: listening grpc=127.0.0.1:50051 pid=1
//   2026-11-22T19:54:25.123Z quantd: warn: call failed peer=ipv4:10.0.0.7:4711 code=INTERNAL
//   {"time":"2026-11-22T19:54:25.123Z","level":"warn","message":"call failed","peer":"ipv4:..."}
//
// In text a level other than info stands before the event; a value with a space, a quote, a
// backslash, or a byte that is no printable ASCII is in quotes, with \" \\ and \x0a. In JSON
// everything beyond ASCII is \u00e9, and what is no UTF-8 is \ufffd: no line can move a terminal's
// cursor, begin another line or turn its direction.
#ifndef QUANTD_SERVER_LOG_FORMAT_H_
#define QUANTD_SERVER_LOG_FORMAT_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/log/log.h"

namespace quantd::log {

// Bytes of a line at most, its end included: what a pipe takes in one piece (PIPE_BUF).
inline constexpr size_t kMostLine = 4096;
// Bytes of a value, before it is escaped. What is beyond is replaced by "...".
inline constexpr size_t kMostValue = 1024;

enum class Style : uint8_t { kText, kTerminal, kJournal, kJson };

// The style of a format for this descriptor.
Style StyleFor(Format format, int descriptor);

// The line without its end. Fields for which there is no room are left out, which it says.
std::string FormatLine(Style style, absl::Time time, Level level, absl::string_view event,
                       const Fields& fields);

absl::string_view LevelName(Level level);

}  // namespace quantd::log

#endif  // QUANTD_SERVER_LOG_FORMAT_H_
