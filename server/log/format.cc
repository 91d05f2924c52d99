#include "server/log/format.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"

namespace quantd::log {
namespace {

constexpr char kCut[] = "...";

std::string Cut(absl::string_view value) {
  if (value.size() <= kMostValue) return std::string(value);
  return absl::StrCat(value.substr(0, kMostValue), kCut);
}

bool IsPlain(char c) {
  return absl::ascii_isgraph(static_cast<unsigned char>(c)) && c != '"' && c != '\\';
}

void AppendText(absl::string_view value, std::string& line) {
  bool plain = true;
  for (const char c : value) plain = plain && IsPlain(c);
  if (plain) {
    line.append(value.data(), value.size());
    return;
  }
  line.push_back('"');
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      line.push_back('\\');
      line.push_back(c);
    } else if (absl::ascii_isprint(byte)) {
      line.push_back(c);
    } else {
      absl::StrAppend(&line, "\\x", absl::Hex(byte, absl::kZeroPad2));
    }
  }
  line.push_back('"');
}

// Numbers that JSON does not support are written as text.
bool IsJsonNumber(absl::string_view value) {
  return value.find_first_not_of("+-.0123456789e") == absl::string_view::npos || value == "true" ||
         value == "false";
}

std::string FormatField(Style style, const Field& field) {
  const std::string value = Cut(field.value);
  std::string text;
  if (style == Style::kJson) {
    const bool bare = !field.is_text && IsJsonNumber(value);
    absl::StrAppend(&text, ",\"", field.name, "\":", bare ? value : JsonText(value));
  } else {
    absl::StrAppend(&text, " ", field.name, "=");
    AppendText(value, text);
  }
  return text;
}

std::string TimeText(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d%ET%H:%M:%E3SZ", time, absl::UTCTimeZone());
}

absl::string_view LevelName(Level level) {
  constexpr absl::string_view kNames[] = {"debug", "info", "warn", "error", "none"};
  return kNames[static_cast<size_t>(level)];
}

// syslog's priorities, as in sd-daemon(3).
absl::string_view Priority(Level level) {
  constexpr absl::string_view kPriorities[] = {"<7>", "<6>", "<4>", "<3>"};
  return kPriorities[static_cast<size_t>(level)];
}

std::string Begin(Style style, absl::Time time, Level level, absl::string_view event) {
  if (style == Style::kJson) {
    return absl::StrCat("{\"time\":\"", TimeText(time), "\",\"level\":\"", LevelName(level),
                        "\",\"message\":", JsonText(event));
  }
  std::string line = style == Style::kJournal ? std::string(Priority(level))
                                              : absl::StrCat(TimeText(time), " quantd: ");
  if (level != Level::kInfo && style == Style::kTerminal) {
    const absl::string_view colour = level == Level::kError  ? "\x1b[31m"
                                     : level == Level::kWarn ? "\x1b[33m"
                                                             : "\x1b[2m";
    absl::StrAppend(&line, colour, LevelName(level), ":\x1b[0m ");
  } else if (level != Level::kInfo) {
    absl::StrAppend(&line, LevelName(level), ": ");
  }
  absl::StrAppend(&line, event);
  return line;
}

// Whether the journal reads the descriptor: systemd sets a variable that identifies it
// (systemd.exec).
bool IsJournal(int descriptor) {
  const char* const stream = std::getenv("JOURNAL_STREAM");
  struct stat status = {};
  if (stream == nullptr || fstat(descriptor, &status) != 0) return false;
  return absl::StrCat(status.st_dev, ":", status.st_ino) == stream;
}

}  // namespace

std::string JsonText(absl::string_view value) {
  return nlohmann::json(std::string(value))
      .dump(-1, ' ', /*ensure_ascii=*/true, nlohmann::json::error_handler_t::replace);
}

Style StyleFor(Format format, int descriptor) {
  if (format == Format::kJson) return Style::kJson;
  if (format == Format::kText) return Style::kText;
  if (IsJournal(descriptor)) return Style::kJournal;
  return isatty(descriptor) != 0 ? Style::kTerminal : Style::kText;
}

std::string FormatLine(Style style, absl::Time time, Level level, absl::string_view event,
                       const Fields& fields) {
  const absl::string_view left_out = style == Style::kJson ? ",\"cut\":true" : " cut=true";
  const absl::string_view end = style == Style::kJson ? "}" : "";
  std::string line = Begin(style, time, level, event);
  bool cut = false;
  for (const Field& field : fields) {
    const std::string text = FormatField(style, field);
    if (line.size() + text.size() + left_out.size() + end.size() + 1 > kMostLine) {
      cut = true;
    } else {
      line += text;
    }
  }
  absl::StrAppend(&line, cut ? left_out : "", end);
  return line;
}

}  // namespace quantd::log
