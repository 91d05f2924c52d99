#include "checkpoints/selection.h"

#include <re2/re2.h>

#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_join.h"
#include "absl/strings/substitute.h"
#include "checkpoints/tensor.h"
#include "files/text.h"

namespace quantd::checkpoints {
namespace {

// `gguf:f32` is a type of tensors in a .gguf; models can't be converted to it.
bool IsOffered(const LayoutInfo& info) { return info.encodes && info.layout != Layout::kGgufF32; }

}  // namespace

std::vector<std::string> TargetNames() {
  std::vector<std::string> names;
  for (const LayoutInfo& info : AllLayouts()) {
    if (IsOffered(info)) names.emplace_back(info.name);
  }
  names.insert(names.end(), {"bf16", "f16", "f32"});
  return names;
}

absl::StatusOr<Target> ParseTarget(absl::string_view name) {
  Target target;
  target.name = std::string(name);
  for (const auto& [text, dtype] : {std::pair("bf16", "BF16"), {"f16", "F16"}, {"f32", "F32"}}) {
    if (name != text) continue;
    target.decodes = true;
    target.output = FloatType(dtype);
    return target;
  }
  const LayoutInfo* info = FindLayout(name);
  if (info != nullptr && IsOffered(*info)) {
    target.layout = info->layout;
    return target;
  }
  const std::vector<std::string> names = TargetNames();
  return absl::InvalidArgumentError(absl::Substitute("--to: '$0' is not a layout$1; use one of: $2",
                                                     name, cli::DidYouMean(name, names),
                                                     absl::StrJoin(names, " ")));
}

bool Matches(absl::string_view name, const RE2& pattern) {
  return RE2::PartialMatch(re2::StringPiece(name.data(), name.size()), pattern);
}

absl::StatusOr<Choice> Choice::Of(const std::string& only, const std::string& skip) {
  Choice choice;
  for (const auto& [flag, text, pattern] :
       {std::tuple("only", only, &choice.only_), std::tuple("skip", skip, &choice.skip_)}) {
    if (text.empty()) continue;
    const auto parsed = std::make_shared<const RE2>(text, RE2::Quiet);
    if (!parsed->ok()) {
      return absl::InvalidArgumentError(absl::Substitute(
          "--$0: '$1' is not a regular expression: $2", flag, text, parsed->error()));
    }
    *pattern = parsed;
  }
  return choice;
}

std::string Choice::SkipReason(absl::string_view name) const {
  if (only_ != nullptr && !Matches(name, *only_)) return "not in --only";
  return skip_ != nullptr && Matches(name, *skip_) ? "in --skip" : "";
}

}  // namespace quantd::checkpoints
