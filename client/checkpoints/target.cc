#include "checkpoints/target.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "checkpoints/tensor.h"
#include "files/closest_name.h"

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
  return absl::InvalidArgumentError(absl::StrCat("--to: '", name, "' is not a layout",
                                                 cli::DidYouMean(name, names),
                                                 "; use one of: ", absl::StrJoin(names, " ")));
}

}  // namespace quantd::checkpoints
