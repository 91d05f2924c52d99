// The tensors that a user selected by name: --only and --skip.
#ifndef QUANTD_CHECKPOINTS_CHOICE_H_
#define QUANTD_CHECKPOINTS_CHOICE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace re2 {
class RE2;
}

namespace quantd::checkpoints {

// Whether a name has a part that matches.
bool Matches(absl::string_view name, const re2::RE2& pattern);

// Immutable, thread-safe.
class Choice {
 public:
  // Regular expressions (RE2); empty: no restriction. Returns INVALID_ARGUMENT if one is invalid.
  static absl::StatusOr<Choice> Of(const std::string& only, const std::string& skip);
  // Why a tensor is not selected; empty if it is.
  std::string SkipReason(absl::string_view name) const;
  bool has_only() const;

 private:
  struct Patterns;
  std::shared_ptr<const Patterns> patterns_;
};

}  // namespace quantd::checkpoints

#endif  // QUANTD_CHECKPOINTS_CHOICE_H_
