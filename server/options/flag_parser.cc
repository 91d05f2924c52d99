// See flag_parser.h.
#include "server/options/flag_parser.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <vector>

#include "absl/flags/commandlineflag.h"
#include "absl/flags/reflection.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "server/options/names.h"

namespace quantd::server {
namespace {

absl::Status Set(absl::string_view flag, absl::string_view source, absl::string_view value) {
  std::string error;
  if (absl::FindCommandLineFlag(flag)->ParseFrom(value, &error)) return absl::OkStatus();
  // Abseil's texts may have several lines.
  return absl::InvalidArgumentError(
      absl::StrCat(source, "='", value, "' is no valid value: ",
                   absl::StrReplaceAll(absl::StripAsciiWhitespace(error), {{"\n", " "}})));
}

std::string EnvironmentName(absl::string_view flag) {
  return absl::StrCat("QUANTD_", absl::AsciiStrToUpper(flag));
}

// "; did you mean X?", or where the names are.
std::string Hint(absl::string_view prefix, const std::string& name) {
  return name.empty() ? "; see --help" : absl::StrCat("; did you mean ", prefix, name, "?");
}

// What nobody reads is no setting, whoever wrote it believes.
absl::Status CheckEnvironment(absl::Span<const absl::string_view> names) {
  constexpr absl::string_view kPrefix = "QUANTD_";
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    absl::string_view name = *entry;
    const size_t equals = name.find('=');
    const absl::string_view value =
        equals == absl::string_view::npos ? "" : name.substr(equals + 1);
    name = name.substr(0, equals);
    const absl::string_view variable = name;
    if (!absl::ConsumePrefix(&name, kPrefix)) continue;
    const bool known = std::any_of(names.begin(), names.end(), [name](absl::string_view flag) {
      return absl::AsciiStrToUpper(flag) == name;
    });
    if (known || IsOthersVariable(name, value)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("unknown variable ", variable, " in the environment",
                     Hint(kPrefix, absl::AsciiStrToUpper(MostLike(name, names)))));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> ParseFlags(absl::Span<const absl::string_view> names, int argc,
                                       const char* const* argv) {
  const auto is_flag = [names](absl::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  const auto is_bool = [](absl::string_view name) {
    return absl::FindCommandLineFlag(name)->IsOfType<bool>();
  };
  const auto is_list = [](absl::string_view name) {
    return absl::FindCommandLineFlag(name)->IsOfType<std::vector<std::string>>();
  };

  std::map<std::string, std::string, std::less<>> values;
  for (int i = 1; i < argc; ++i) {
    absl::string_view text = argv[i];
    if (!absl::ConsumePrefix(&text, "--") || text.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("'", argv[i], "' is no flag; see --help"));
    }
    const size_t equals = text.find('=');
    absl::string_view name = text.substr(0, equals);
    if (name == "help" || name == "version") return std::string(name);
    std::string value;
    if (equals != absl::string_view::npos) value = std::string(text.substr(equals + 1));
    absl::string_view positive = name;
    if (equals == absl::string_view::npos && absl::ConsumePrefix(&positive, "no") &&
        is_flag(positive) && is_bool(positive)) {
      name = positive;
      value = "false";
    } else if (!is_flag(name)) {
      return absl::InvalidArgumentError(
          absl::StrCat("unknown flag '", argv[i], "'", Hint("--", MostLike(name, names))));
    } else if (equals == absl::string_view::npos && is_bool(name)) {
      value = "true";
    } else if (equals == absl::string_view::npos) {
      if (i + 1 == argc) {
        return absl::InvalidArgumentError(absl::StrCat("--", name, " needs a value"));
      }
      value = argv[++i];
    }
    std::string& known = values[std::string(name)];
    known = known.empty() || !is_list(name) ? value : absl::StrCat(known, ",", value);
  }

  if (absl::Status status = CheckEnvironment(names); !status.ok()) return status;
  for (const absl::string_view name : names) {
    const std::string variable = EnvironmentName(name);
    const char* const value = std::getenv(variable.c_str());
    if (value == nullptr || values.count(name) > 0) continue;
    if (absl::Status status = Set(name, variable, value); !status.ok()) return status;
  }
  for (const auto& [name, value] : values) {
    if (absl::Status status = Set(name, absl::StrCat("--", name), value); !status.ok()) {
      return status;
    }
  }
  return std::string();
}

}  // namespace quantd::server
