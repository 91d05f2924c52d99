// What --to names: a layout, or the type that weights are decoded to.
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
  Layout layout = Layout::kFp8Tiles;         // when it does not
  DataType output = DataType::kUnspecified;  // when it does

  bool gguf() const { return !decodes && Info(layout).family == LayoutFamily::kGguf; }
};

// Every name, layouts first.
std::vector<std::string> TargetNames();
// INVALID_ARGUMENT that lists the names, and guesses which was meant.
absl::StatusOr<Target> ParseTarget(absl::string_view name);

}  // namespace quantd::checkpoints

#endif  // QUANTD_CHECKPOINTS_TARGET_H_
