// The value of --to: a layout, or the type to which weights are decoded.
#ifndef QUANTD_CHECKPOINTS_TARGET_H_
#define QUANTD_CHECKPOINTS_TARGET_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "quantd/layout.h"

namespace quantd::checkpoints {

struct Target {
  std::string name;
  bool decodes = false;
  Layout layout = Layout::kFp8Tiles;         // if it encodes
  DataType output = DataType::kUnspecified;  // if it decodes

  bool gguf() const { return !decodes && Info(layout).family == LayoutFamily::kGguf; }
};

// All names, layouts first.
std::vector<std::string> TargetNames();
// Returns INVALID_ARGUMENT, with all names and a guess, for an unknown name.
absl::StatusOr<Target> ParseTarget(absl::string_view name);

}  // namespace quantd::checkpoints

#endif  // QUANTD_CHECKPOINTS_TARGET_H_
