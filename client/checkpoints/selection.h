// What a user selected: the layout (--to), and tensors by name (--only, --skip).
#ifndef QUANTD_CHECKPOINTS_SELECTION_H_
#define QUANTD_CHECKPOINTS_SELECTION_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "quantd/layout.h"

namespace re2 {
class RE2;
}

namespace quantd::checkpoints {

// The value of --to: a layout, or the type to which weights are decoded.
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

// Whether a name has a part that matches.
bool Matches(absl::string_view name, const re2::RE2& pattern);

// Immutable, thread-safe.
class Choice {
 public:
  // Regular expressions (RE2); empty: no restriction. Returns INVALID_ARGUMENT if one is invalid.
  static absl::StatusOr<Choice> Of(const std::string& only, const std::string& skip);
  // Why a tensor is not selected; empty if it is.
  std::string SkipReason(absl::string_view name) const;
  bool has_only() const { return only_ != nullptr; }

 private:
  std::shared_ptr<const re2::RE2> only_, skip_;  // null: no restriction
};

}  // namespace quantd::checkpoints

#endif  // QUANTD_CHECKPOINTS_SELECTION_H_
