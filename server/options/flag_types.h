// Types of flags: a time, and words of a few.
#ifndef QUANTD_SERVER_OPTIONS_FLAG_TYPES_H_
#define QUANTD_SERVER_OPTIONS_FLAG_TYPES_H_

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "server/log/log.h"
#include "server/transport/encoding.h"

namespace quantd::server {

// A time as a flag: a number of seconds, or a number with a unit such as 500ms or 2m.
struct Seconds {
  absl::Duration value;
};
inline bool AbslParseFlag(absl::string_view text, Seconds* seconds, std::string* error) {
  double number = 0;
  if (absl::SimpleAtod(text, &number) && std::isfinite(number)) {
    seconds->value = absl::Seconds(number);
    return true;
  }
  if (absl::ParseDuration(text, &seconds->value)) return true;
  *error = "must be a number of seconds, or a number with a unit: ms, s, m, h";
  return false;
}
inline std::string AbslUnparseFlag(Seconds seconds) {
  return absl::StrCat(absl::ToDoubleSeconds(seconds.value));
}

// A word of a few, as a flag.
template <typename Value, size_t n>
struct Words {
  std::array<std::pair<absl::string_view, Value>, n> all;

  bool Parse(absl::string_view text, Value* value, std::string* error) const {
    std::vector<absl::string_view> names;
    for (const auto& [name, of_name] : all) {
      if (name == text) {
        *value = of_name;
        return true;
      }
      names.push_back(name);
    }
    *error = absl::StrCat("must be one of ", absl::StrJoin(names, ", "));
    return false;
  }
  std::string Name(Value value) const {
    const auto has_value = [value](const auto& pair) { return pair.second == value; };
    return std::string(std::find_if(all.begin(), all.end(), has_value)->first);
  }
};
inline constexpr Words<log::Format, 3> kFormats = {
    {{{"auto", log::Format::kAuto}, {"text", log::Format::kText}, {"json", log::Format::kJson}}}};
inline constexpr Words<log::Level, 4> kLevels = {{{{"debug", log::Level::kDebug},
                                                   {"info", log::Level::kInfo},
                                                   {"warn", log::Level::kWarn},
                                                   {"error", log::Level::kError}}}};

struct LogFormat {
  log::Format value;
};
inline bool AbslParseFlag(absl::string_view text, LogFormat* format, std::string* error) {
  return kFormats.Parse(text, &format->value, error);
}
inline std::string AbslUnparseFlag(LogFormat format) { return kFormats.Name(format.value); }

inline constexpr Words<transport::Encoding, 3> kCompressions = {transport::kCompressions};

struct CompressAnswers {
  transport::Encoding value;
};
inline bool AbslParseFlag(absl::string_view text, CompressAnswers* how, std::string* error) {
  return kCompressions.Parse(text, &how->value, error);
}
inline std::string AbslUnparseFlag(CompressAnswers how) { return kCompressions.Name(how.value); }

struct LogLevel {
  log::Level value;
};
inline bool AbslParseFlag(absl::string_view text, LogLevel* level, std::string* error) {
  return kLevels.Parse(text, &level->value, error);
}
inline std::string AbslUnparseFlag(LogLevel level) { return kLevels.Name(level.value); }

}  // namespace quantd::server

#endif  // QUANTD_SERVER_OPTIONS_FLAG_TYPES_H_
