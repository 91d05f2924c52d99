#include "checkpoints/choice.h"

#include <re2/re2.h>

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace quantd::checkpoints {
bool Matches(absl::string_view name, const RE2& pattern) {
  return RE2::PartialMatch(re2::StringPiece(name.data(), name.size()), pattern);
}

struct Choice::Patterns {
  Patterns(const std::string& only_text, const std::string& skip_text)
      : has_only(!only_text.empty()),
        has_skip(!skip_text.empty()),
        only(only_text, RE2::Quiet),
        skip(skip_text, RE2::Quiet) {}
  const bool has_only, has_skip;
  const RE2 only, skip;
};

absl::StatusOr<Choice> Choice::Of(const std::string& only, const std::string& skip) {
  Choice choice;
  const auto patterns = std::make_shared<const Patterns>(only, skip);
  for (const auto& [flag, pattern] :
       {std::pair("only", &patterns->only), {"skip", &patterns->skip}}) {
    if (pattern->ok()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--", flag, ": '", pattern->pattern(),
                     "' is not a regular expression: ", pattern->error()));
  }
  choice.patterns_ = patterns;
  return choice;
}

std::string Choice::SkipReason(absl::string_view name) const {
  if (patterns_->has_only && !Matches(name, patterns_->only)) return "not in --only";
  if (patterns_->has_skip && Matches(name, patterns_->skip)) return "in --skip";
  return "";
}

bool Choice::has_only() const { return patterns_->has_only; }

}  // namespace quantd::checkpoints
